# What the rest is made of: who we are, names, tags.

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition

  tags = merge({ Environment = var.environment }, var.resource_tag)

  # Roles and rules have names of at most 64 characters, queues of 80. A longer one keeps its beginning, and a piece of a
  # digest keeps it apart from others.
  digest = substr(sha256(var.eks_cluster_name), 0, 8)
  names = {
    for what, prefix in {
      controller = "KarpenterController-"
      node       = "KarpenterNodeRole-"
      queue      = "karpenter-"
    } :
    what => (
      length("${prefix}${var.eks_cluster_name}") <= 64
      ? "${prefix}${var.eks_cluster_name}"
      : "${substr("${prefix}${var.eks_cluster_name}", 0, 55)}-${local.digest}"
    )
  }
}

resource "aws_ec2_tag" "subnet" {
  count = length(var.discovery_subnet_ids)

  resource_id = var.discovery_subnet_ids[count.index]
  key         = "karpenter.sh/discovery"
  value       = var.eks_cluster_name
}

resource "aws_ec2_tag" "security_group" {
  count = length(var.discovery_security_group_ids)

  resource_id = var.discovery_security_group_ids[count.index]
  key         = "karpenter.sh/discovery"
  value       = var.eks_cluster_name
}
