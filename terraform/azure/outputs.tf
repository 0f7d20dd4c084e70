output "identity_client_id" {
  description = "Client id of the controller's identity."
  value       = azurerm_user_assigned_identity.controller.client_id
}

output "identity_principal_id" {
  description = "Object id of the controller's identity, for more role assignments."
  value       = azurerm_user_assigned_identity.controller.principal_id
}

output "role_definition_ids" {
  description = "The roles that were made, by key of deploy/azure/role.json."
  value       = { for key, role in azurerm_role_definition.controller : key => role.role_definition_resource_id }
}

output "node_resource_group" {
  description = "Group that nodes are made in."
  value       = local.cluster.node_resource_group
}

output "commands" {
  description = "What to run next."
  value = {
    rollout = "kubectl -n ${var.namespace} rollout status deployment/karpenter"
    logs    = "kubectl -n ${var.namespace} logs -l app.kubernetes.io/name=karpenter -f"
    doctor  = "dovetail doctor --service-account ${var.namespace}/${var.service_account_name}"
    roles   = "az role assignment list --all --assignee ${azurerm_user_assigned_identity.controller.principal_id} -o table"
    nodes   = "az vm list -g ${local.cluster.node_resource_group} -o table"
  }
}
