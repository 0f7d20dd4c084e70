# The controller in the cluster. The helm provider is the caller's: it knows how to reach the cluster.

locals {
  charts = coalesce(var.helm_repository, "${path.module}/../../charts")

  values = yamlencode({
    serviceAccount = { name = var.service_account_name }
    settings = {
      clusterName       = var.eks_cluster_name
      clusterEndpoint   = var.eks_cluster_endpoint
      interruptionQueue = local.queue.name
    }
    controller = {
      image = { for field, value in var.image : field => value if value != null }
      # Pods cannot ask the machine for its region where instance metadata allows one hop only.
      env       = [{ name = "AWS_REGION", value = var.aws_region }]
      resources = { requests = { cpu = "1", memory = "1Gi" } }
    }
  })
}

resource "helm_release" "crds" {
  count = var.install_controller ? 1 : 0

  name             = "dovetail-crd"
  chart            = var.helm_repository == null ? "${local.charts}/dovetail-crd" : "dovetail-crd"
  repository       = var.helm_repository
  version          = var.helm_chart_version
  namespace        = var.namespace
  create_namespace = true
  # An installation of Karpenter has left the same definitions.
  take_ownership = true
}

# Under the name karpenter the chart gives what it makes Karpenter's names, labels and selectors.
resource "helm_release" "controller" {
  count = var.install_controller ? 1 : 0

  name             = "karpenter"
  chart            = var.helm_repository == null ? "${local.charts}/dovetail" : "dovetail"
  repository       = var.helm_repository
  version          = var.helm_chart_version
  namespace        = var.namespace
  create_namespace = true
  skip_crds        = true
  values           = concat([local.values], var.helm_values)

  # Without credentials and a queue the first minutes would be spent on errors.
  depends_on = [
    aws_eks_pod_identity_association.controller,
    aws_iam_role_policy_attachment.controller,
    aws_sqs_queue_policy.interruption,
    helm_release.crds,
  ]
}
