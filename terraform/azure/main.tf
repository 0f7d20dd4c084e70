# What the rest is made of: the cluster as Azure knows it, names, tags.

data "azurerm_client_config" "current" {}

data "azurerm_kubernetes_cluster" "this" {
  name                = var.aks_cluster_name
  resource_group_name = var.resource_group_name
}

locals {
  cluster      = data.azurerm_kubernetes_cluster.this
  subscription = "/subscriptions/${data.azurerm_client_config.current.subscription_id}"

  kubelet_identity = local.cluster.kubelet_identity[0]
  node_identities  = distinct(concat([local.kubelet_identity.user_assigned_identity_id], var.node_identity_ids))

  # Images of shared galleries are found by AKS's list of them.
  uses_galleries = lookup(var.controller_environment, "USE_SIG", "") == "true"
  uses_machines  = lookup(var.controller_environment, "AKS_MACHINES_POOL_NAME", "") != ""

  tags = merge({ Environment = var.environment }, var.resource_tag)
}
