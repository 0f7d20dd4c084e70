# The controller in the cluster. The helm provider is the caller's: it knows how to reach the cluster.

locals {
  charts = coalesce(var.helm_repository, "${path.module}/../../charts")

  # The names of upstream's variables, as its own chart hands them on.
  environment = merge({
    ADDITIONAL_TAGS                  = join(",", [for key, value in var.resource_tag : "${key}=${value}"])
    ARM_RESOURCE_GROUP               = var.resource_group_name
    AZURE_NODE_RESOURCE_GROUP        = local.cluster.node_resource_group
    AZURE_SUBSCRIPTION_ID            = data.azurerm_client_config.current.subscription_id
    DNS_SERVICE_IP                   = local.cluster.network_profile[0].dns_service_ip
    KUBELET_IDENTITY_CLIENT_ID       = local.kubelet_identity.client_id
    LOCATION                         = local.cluster.location
    NETWORK_DATAPLANE                = var.network_dataplane
    NETWORK_PLUGIN                   = local.cluster.network_profile[0].network_plugin
    NETWORK_PLUGIN_MODE              = var.network_plugin_mode
    NETWORK_POLICY                   = local.cluster.network_profile[0].network_policy
    NODE_IDENTITIES                  = join(",", local.node_identities)
    NODE_OSDISK_DISKENCRYPTIONSET_ID = var.disk_encryption_set_id
    SSH_PUBLIC_KEY                   = trimspace(var.ssh_public_key)
    VNET_SUBNET_ID                   = var.vnet_subnet_id
  }, var.controller_environment)

  # The token stays in its secret: neither the state nor the release has it.
  token = [
    for name, key in { BOOTSTRAP_TOKEN_ID = "token-id", BOOTSTRAP_TOKEN_SECRET = "token-secret" } :
    { name = name, valueFrom = { secretKeyRef = { name = var.bootstrap_token_secret, key = key } } }
  ]

  values = yamlencode({
    serviceAccount = {
      name        = var.service_account_name
      annotations = { "azure.workload.identity/client-id" = azurerm_user_assigned_identity.controller.client_id }
    }
    podLabels = { "azure.workload.identity/use" = "true" }
    dovetail  = { cloud = "azure" }
    settings = {
      clusterName     = var.aks_cluster_name
      clusterEndpoint = "https://${coalesce(local.cluster.private_fqdn, local.cluster.fqdn)}:443"
    }
    controller = {
      image     = { for field, value in var.image : field => value if value != null }
      resources = { requests = { cpu = "1", memory = "1Gi" } }
      # A mode that is empty is an answer, too: nothing would be overlay.
      env = concat(
        local.token,
        [{ name = "KUBELET_BOOTSTRAP_TOKEN", value = "$(BOOTSTRAP_TOKEN_ID).$(BOOTSTRAP_TOKEN_SECRET)" }],
        [for name, value in local.environment : { name = name, value = value } if name == "NETWORK_PLUGIN_MODE" || try(length(value), 0) > 0],
      )
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

  # Without roles the first minutes would be spent on errors.
  depends_on = [
    azurerm_federated_identity_credential.controller,
    azurerm_role_assignment.controller,
    helm_release.crds,
  ]
}
