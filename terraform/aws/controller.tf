# The controller's role, what it may do, and who gets it.

locals {
  # The policy is a file of its own, so that it can be read, tested and used without Terraform.
  policy = jsondecode(templatefile("${path.module}/../../deploy/aws/iam-policy.json", {
    AWS_ACCOUNT_ID = local.account
    AWS_PARTITION  = local.partition
    AWS_REGION     = var.aws_region
    CLUSTER_NAME   = var.eks_cluster_name
    NODE_ROLE_NAME = local.node_role.path_and_name
    QUEUE_NAME     = local.queue.name
  }))

  statements = {
    for statement in local.policy.Statement : statement.Sid => merge(statement, {
      Resource = concat(
        statement.Resource,
        statement.Sid == "AllowSSMReadActions" ? var.ssm_parameter_arns : [],
      )
    })
  }

  # A managed policy has at most 6,144 characters, so the statements are in three. A test sees that each is in one of them.
  policies = {
    lifecycle = [
      "AllowScopedEC2InstanceAccessActions",
      "AllowScopedEC2LaunchTemplateAccessActions",
      "AllowScopedEC2InstanceActionsWithTags",
      "AllowScopedResourceCreationTagging",
      "AllowScopedResourceTagging",
      "AllowScopedDeletion",
    ]
    profiles = [
      "AllowPassingInstanceRole",
      "AllowScopedInstanceProfileCreationActions",
      "AllowScopedInstanceProfileTagActions",
      "AllowScopedInstanceProfileActions",
      "AllowInstanceProfileReadActions",
      "AllowUnscopedInstanceProfileListAction",
    ]
    discovery = [
      "AllowAPIServerEndpointDiscovery",
      "AllowInterruptionQueueActions",
      "AllowZonalShiftStatusReadOnly",
      "AllowRegionalReadActions",
      "AllowSSMReadActions",
      "AllowPricingReadActions",
    ]
  }
}

resource "aws_iam_role" "controller" {
  name        = local.names.controller
  description = "Dovetail's controller in EKS cluster ${var.eks_cluster_name}"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "PodIdentity"
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
    }]
  })
}

resource "aws_iam_policy" "controller" {
  for_each = local.policies

  name        = "KarpenterController-${each.key}-${trimprefix(local.names.controller, "KarpenterController-")}"
  description = "What Dovetail's controller may do in EKS cluster ${var.eks_cluster_name}: ${each.key}"
  tags        = local.tags

  policy = jsonencode({
    Version   = local.policy.Version
    Statement = [for sid in each.value : local.statements[sid]]
  })
}

resource "aws_iam_role_policy_attachment" "controller" {
  for_each = aws_iam_policy.controller

  role       = aws_iam_role.controller.name
  policy_arn = each.value.arn
}

resource "aws_eks_pod_identity_association" "controller" {
  cluster_name    = var.eks_cluster_name
  namespace       = var.namespace
  service_account = var.service_account_name
  role_arn        = aws_iam_role.controller.arn
  tags            = local.tags
}
