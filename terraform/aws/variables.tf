variable "eks_cluster_name" {
  description = "Name of the EKS cluster."
  type        = string

  validation {
    condition     = can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$", var.eks_cluster_name))
    error_message = "eks_cluster_name must be the name of an EKS cluster: 1 to 100 letters, digits, - and _."
  }
}

variable "eks_cluster_endpoint" {
  description = "URL of the cluster's API server, which new nodes join at."
  type        = string

  validation {
    condition     = startswith(var.eks_cluster_endpoint, "https://")
    error_message = "eks_cluster_endpoint must be a URL that begins with https://, such as the endpoint EKS gives its clusters."
  }
}

variable "aws_region" {
  description = "Region of the cluster."
  type        = string
}

variable "environment" {
  description = "Name of the environment. Becomes a tag, nothing else."
  type        = string
  default     = "dev"
}

variable "namespace" {
  description = "Namespace the controller runs in. Made if it does not exist."
  type        = string
  default     = "karpenter"
}

variable "service_account_name" {
  description = "ServiceAccount of the controller, which gets the controller's role by Pod Identity."
  type        = string
  default     = "karpenter"
}

variable "helm_chart_version" {
  description = "Version of both charts. These are Dovetail's versions, not Karpenter's."
  type        = string
  default     = "0.1.0"
}

variable "resource_tag" {
  description = "Tags for every resource of AWS."
  type        = map(string)
  default     = {}
}

# What follows has no counterpart in the module this one takes the place of.

variable "helm_repository" {
  description = "Repository of the charts, such as oci://REGISTRY/charts. The charts beside this module if null."
  type        = string
  default     = null
}

variable "image" {
  description = "Where the controller's image is. The chart's defaults if left out, which no cluster can pull."
  type = object({
    repository = optional(string)
    tag        = optional(string)
    digest     = optional(string)
  })
  default = {}
}

variable "helm_values" {
  description = "More values for the chart dovetail, as YAML; later ones win, and all win over those of this module."
  type        = list(string)
  default     = []
}

variable "install_controller" {
  description = "Whether the charts are installed. Without it only AWS is prepared, for instance where Argo CD installs."
  type        = bool
  default     = true
}

variable "existing_node_role_name" {
  description = "Name of a role for nodes that exists already. One is made if null."
  type        = string
  default     = null
}

variable "node_role_policy_arns" {
  description = "More policies for the role that is made for nodes."
  type        = map(string)
  default     = {}
}

variable "create_access_entry" {
  description = "Whether the node role is let into the cluster. Not needed where an entry or the aws-auth ConfigMap does it."
  type        = bool
  default     = true
}

variable "existing_queue_name" {
  description = "Name of a queue that gets interruptions already. One is made, with its rules, if null."
  type        = string
  default     = null
}

variable "ssm_parameter_arns" {
  description = "ARNs of own SSM parameters that EC2NodeClasses name images by."
  type        = list(string)
  default     = []
}

variable "discovery_subnet_ids" {
  description = "Subnets to tag with karpenter.sh/discovery, by which EC2NodeClasses find them."
  type        = list(string)
  default     = []
}

variable "discovery_security_group_ids" {
  description = "Security groups to tag with karpenter.sh/discovery, by which EC2NodeClasses find them."
  type        = list(string)
  default     = []
}
