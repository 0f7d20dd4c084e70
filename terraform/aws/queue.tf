# The queue of interruptions, and the rules that fill it.

locals {
  makes_queue = var.existing_queue_name == null

  queue = local.makes_queue ? {
    name = aws_sqs_queue.interruption[0].name
    url  = aws_sqs_queue.interruption[0].url
    } : {
    name = var.existing_queue_name
    url  = data.aws_sqs_queue.interruption[0].url
  }

  events = {
    Health       = { source = "aws.health", detail = "AWS Health Event" }
    SpotWarning  = { source = "aws.ec2", detail = "EC2 Spot Instance Interruption Warning" }
    Rebalance    = { source = "aws.ec2", detail = "EC2 Instance Rebalance Recommendation" }
    StateChange  = { source = "aws.ec2", detail = "EC2 Instance State-change Notification" }
    Reservations = { source = "aws.ec2", detail = "EC2 Capacity Reservation Instance Interruption Warning" }
  }
}

data "aws_sqs_queue" "interruption" {
  count = local.makes_queue ? 0 : 1

  name = var.existing_queue_name
}

# What is older than five minutes is of no use: a spot machine is gone two minutes after its warning.
resource "aws_sqs_queue" "interruption" {
  count = local.makes_queue ? 1 : 0

  name                      = local.names.queue
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue_policy" "interruption" {
  count = local.makes_queue ? 1 : 0

  queue_url = aws_sqs_queue.interruption[0].url

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Events"
        Effect    = "Allow"
        Principal = { Service = ["events.amazonaws.com", "sqs.amazonaws.com"] }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.interruption[0].arn
      },
      {
        Sid       = "DenyHTTP"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sqs:*"
        Resource  = aws_sqs_queue.interruption[0].arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

# The names begin with Karpenter: `aws events list-rules --name-prefix Karpenter` finds them.
resource "aws_cloudwatch_event_rule" "interruption" {
  for_each = { for name, event in local.events : name => event if local.makes_queue }

  name        = "Karpenter${each.key}-${substr(var.eks_cluster_name, 0, 30)}-${local.digest}"
  description = "${each.value.detail}, for Dovetail in EKS cluster ${var.eks_cluster_name}"
  tags        = local.tags

  event_pattern = jsonencode({
    source        = [each.value.source]
    "detail-type" = [each.value.detail]
  })
}

resource "aws_cloudwatch_event_target" "interruption" {
  for_each = aws_cloudwatch_event_rule.interruption

  rule      = each.value.name
  target_id = "KarpenterInterruptionQueue"
  arn       = aws_sqs_queue.interruption[0].arn
}
