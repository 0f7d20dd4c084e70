# Every input, on a cluster with its network and the add-on that Pod Identity needs.

variable "vpc_id" {
  description = "The cluster's VPC."
  type        = string
}

data "aws_eks_cluster" "this" {
  name = "eks-cluster-prod"
}

data "aws_subnets" "private" {
  filter {
    name   = "vpc-id"
    values = [var.vpc_id]
  }

  tags = {
    "kubernetes.io/role/internal-elb" = "1"
  }
}

provider "aws" {
  region = "us-east-1"
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

# Hands the controller's role to its pods.
resource "aws_eks_addon" "pod_identity" {
  cluster_name = data.aws_eks_cluster.this.name
  addon_name   = "eks-pod-identity-agent"
}

module "karpenter" {
  source = "../.."

  eks_cluster_name     = data.aws_eks_cluster.this.name
  eks_cluster_endpoint = data.aws_eks_cluster.this.endpoint
  environment          = "prod"
  aws_region           = "us-east-1"
  namespace            = "karpenter"
  service_account_name = "karpenter"
  helm_chart_version   = "0.1.0"

  # The charts beside the module are used without this.
  helm_repository = "oci://123456789012.dkr.ecr.us-east-1.amazonaws.com/charts"

  image = {
    repository = "123456789012.dkr.ecr.us-east-1.amazonaws.com/dovetail"
    tag        = "0.1.0"
    digest     = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
  }

  helm_values = [yamlencode({
    serviceMonitor = { enabled = true }
    controller     = { resources = { requests = { cpu = "500m", memory = "512Mi" }, limits = { memory = "1Gi" } } }
  })]

  install_controller      = true
  existing_node_role_name = null
  node_role_policy_arns   = { ebs = "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy" }
  create_access_entry     = true
  existing_queue_name     = null
  ssm_parameter_arns      = ["arn:aws:ssm:us-east-1:123456789012:parameter/golden-image"]

  # Instead of tags that the network's own configuration sets.
  discovery_subnet_ids         = data.aws_subnets.private.ids
  discovery_security_group_ids = [data.aws_eks_cluster.this.vpc_config[0].cluster_security_group_id]

  resource_tag = {
    ManagedBy = "Terraform"
    Project   = "production-eks-platform"
    Team      = "platform-engineering"
  }

  depends_on = [aws_eks_addon.pod_identity]
}

output "node_iam_role_name" {
  description = "For spec.role of EC2NodeClasses."
  value       = module.karpenter.node_iam_role_name
}
