# The controller's identity, who gets it, and what it may do where.

resource "azurerm_user_assigned_identity" "controller" {
  name                = "karpenter-${var.aks_cluster_name}"
  resource_group_name = var.resource_group_name
  location            = local.cluster.location
  tags                = local.tags
}

resource "azurerm_federated_identity_credential" "controller" {
  name                = "karpenter-${var.aks_cluster_name}"
  resource_group_name = var.resource_group_name
  parent_id           = azurerm_user_assigned_identity.controller.id
  issuer              = local.cluster.oidc_issuer_url
  subject             = "system:serviceaccount:${var.namespace}:${var.service_account_name}"
  audience            = ["api://AzureADTokenExchange"]
}

locals {
  # The roles are a file of their own, so that they can be read, tested and used without Terraform.
  roles = { for role in jsondecode(file("${path.module}/../../deploy/azure/role.json")) : role.key => role }

  # Where each of them is given. What is not needed is not made.
  scopes = {
    nodes       = [local.cluster.node_resource_group_id]
    network     = [split("/subnets/", var.vnet_subnet_id)[0]]
    region      = [local.subscription]
    identity    = local.node_identities
    encryption  = compact([var.disk_encryption_set_id])
    node-images = local.uses_galleries || local.uses_machines ? [local.subscription] : []
    machines    = local.uses_machines ? [local.cluster.id] : []
  }
  used = { for key, scopes in local.scopes : key => scopes if length(scopes) > 0 }

  assignments = merge([
    for key, scopes in local.used : {
      for index, scope in scopes : "${key}-${index}" => { role = key, scope = scope }
    }
  ]...)

  # A role can be given inside a group or a subscription: the first five parts of an id, or the first three.
  assignable = {
    for key, scopes in local.used : key => distinct([
      for scope in scopes : join("/", slice(split("/", scope), 0, min(5, length(split("/", scope)))))
    ])
  }
}

resource "azurerm_role_definition" "controller" {
  for_each = local.used

  # Names of roles are one of a kind in a tenant.
  name              = "${local.roles[each.key].name} (${var.aks_cluster_name}, ${var.resource_group_name})"
  description       = local.roles[each.key].description
  scope             = local.assignable[each.key][0]
  assignable_scopes = local.assignable[each.key]

  permissions {
    actions = local.roles[each.key].actions
  }
}

resource "azurerm_role_assignment" "controller" {
  for_each = local.assignments

  scope              = each.value.scope
  role_definition_id = azurerm_role_definition.controller[each.value.role].role_definition_resource_id
  principal_id       = azurerm_user_assigned_identity.controller.principal_id
  principal_type     = "ServicePrincipal"
}
