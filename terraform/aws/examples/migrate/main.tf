# From an installation of Karpenter: its queue, its node role and its way into the cluster stay as they are.

data "aws_eks_cluster" "this" {
  name = "eks-cluster-dev"
}

provider "aws" {
  region = "us-west-2"
}

provider "helm" {
  kubernetes = {
    host                   = data.aws_eks_cluster.this.endpoint
    cluster_ca_certificate = base64decode(data.aws_eks_cluster.this.certificate_authority[0].data)
    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "aws"
      args        = ["eks", "get-token", "--cluster-name", data.aws_eks_cluster.this.name]
    }
  }
}

module "karpenter" {
  source = "../.."

  eks_cluster_name     = data.aws_eks_cluster.this.name
  eks_cluster_endpoint = data.aws_eks_cluster.this.endpoint
  aws_region           = "us-west-2"

  # Pod Identity allows one association for a service account, and the old one is still there.
  service_account_name = "dovetail"

  existing_node_role_name = "KarpenterNodeRole-eks-cluster-dev"
  existing_queue_name     = "karpenter-eks-cluster-dev"
  create_access_entry     = false

  image = { repository = "123456789012.dkr.ecr.us-west-2.amazonaws.com/dovetail" }
}
