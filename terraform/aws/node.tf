# The role of the nodes, and their way into the cluster.

locals {
  makes_node_role = var.existing_node_role_name == null

  node_role = local.makes_node_role ? {
    name          = aws_iam_role.node[0].name
    arn           = aws_iam_role.node[0].arn
    path_and_name = aws_iam_role.node[0].name
    } : {
    name          = data.aws_iam_role.node[0].name
    arn           = data.aws_iam_role.node[0].arn
    path_and_name = trimprefix("${data.aws_iam_role.node[0].path}${data.aws_iam_role.node[0].name}", "/")
  }

  node_policies = merge(
    {
      for name in [
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonSSMManagedInstanceCore",
      ] : name => "arn:${local.partition}:iam::aws:policy/${name}"
    },
    var.node_role_policy_arns,
  )
}

data "aws_iam_role" "node" {
  count = local.makes_node_role ? 0 : 1

  name = var.existing_node_role_name
}

resource "aws_iam_role" "node" {
  count = local.makes_node_role ? 1 : 0

  name        = local.names.node
  description = "Nodes that Dovetail launches for EKS cluster ${var.eks_cluster_name}"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "EC2"
      Effect    = "Allow"
      Principal = { Service = "ec2.${data.aws_partition.current.dns_suffix}" }
      Action    = ["sts:AssumeRole"]
    }]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = { for name, arn in local.node_policies : name => arn if local.makes_node_role }

  role       = aws_iam_role.node[0].name
  policy_arn = each.value
}

# Where EC2NodeClasses name a role, the controller makes a profile for each of them. This one is for those that name a
# profile instead.
resource "aws_iam_instance_profile" "node" {
  name = local.node_role.name
  role = local.node_role.name
  tags = local.tags
}

resource "aws_eks_access_entry" "node" {
  count = var.create_access_entry ? 1 : 0

  cluster_name  = var.eks_cluster_name
  principal_arn = local.node_role.arn
  type          = "EC2_LINUX"
  tags          = local.tags
}
