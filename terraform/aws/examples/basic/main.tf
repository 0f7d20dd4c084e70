# The smallest: a cluster that exists, and nothing but what is required. No image is published yet, so yours is named.

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
  environment          = "dev"
  aws_region           = "us-west-2"

  image = { repository = "123456789012.dkr.ecr.us-west-2.amazonaws.com/dovetail" }

  resource_tag = {
    ManagedBy = "Terraform"
    Project   = "production-eks-platform"
  }
}

output "commands" {
  value = module.karpenter.commands
}
