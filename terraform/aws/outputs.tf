output "iam_role_arn" {
  description = "ARN of the controller's role."
  value       = aws_iam_role.controller.arn
}

output "node_iam_role_arn" {
  description = "ARN of the nodes' role."
  value       = local.node_role.arn
}

output "node_iam_role_name" {
  description = "Name of the nodes' role, for spec.role of EC2NodeClasses."
  value       = local.node_role.name
}

output "instance_profile_name" {
  description = "Name of an instance profile of the nodes' role, for spec.instanceProfile of EC2NodeClasses."
  value       = aws_iam_instance_profile.node.name
}

output "queue_name" {
  description = "Name of the queue of interruptions."
  value       = local.queue.name
}

output "queue_url" {
  description = "URL of the queue of interruptions."
  value       = local.queue.url
}

output "commands" {
  description = "What to run next."
  value = {
    rollout = "kubectl -n ${var.namespace} rollout status deployment/karpenter"
    logs    = "kubectl -n ${var.namespace} logs -l app.kubernetes.io/name=karpenter -f"
    doctor  = "dovetail doctor --service-account ${var.namespace}/${var.service_account_name}"
    queue   = "aws sqs get-queue-attributes --region ${var.aws_region} --queue-url ${local.queue.url} --attribute-names All"
    rules   = "aws events list-rules --region ${var.aws_region} --name-prefix Karpenter"
  }
}
