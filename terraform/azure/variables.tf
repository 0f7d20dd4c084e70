variable "aks_cluster_name" {
  description = "Name of the AKS cluster. It needs the OIDC issuer and workload identity, and a managed identity."
  type        = string
}

variable "resource_group_name" {
  description = "Group of the cluster; the controller's identity is made there, too."
  type        = string
}

variable "vnet_subnet_id" {
  description = "Id of the subnet for nodes whose AKSNodeClass names none."
  type        = string

  validation {
    condition     = can(regex("(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Network/virtualNetworks/[^/]+/subnets/[^/]+$", var.vnet_subnet_id))
    error_message = "vnet_subnet_id must be the id of a subnet, such as `az network vnet subnet show --query id` prints."
  }
}

variable "ssh_public_key" {
  description = "Public key for the administrator of nodes."
  type        = string

  validation {
    condition     = startswith(trimspace(var.ssh_public_key), "ssh-")
    error_message = "ssh_public_key must be the text of a public key, which begins with ssh-."
  }
}

variable "bootstrap_token_secret" {
  description = "Secret of type bootstrap.kubernetes.io/token, in the controller's namespace, by which new nodes join."
  type        = string
}

variable "environment" {
  description = "Name of the environment. Becomes a tag, nothing else."
  type        = string
  default     = "dev"
}

variable "namespace" {
  description = "Namespace the controller runs in. AKS keeps tokens for nodes in kube-system."
  type        = string
  default     = "kube-system"
}

variable "service_account_name" {
  description = "ServiceAccount of the controller, which gets the controller's identity."
  type        = string
  default     = "karpenter-sa"
}

variable "helm_chart_version" {
  description = "Version of both charts. These are Dovetail's versions, not Karpenter's."
  type        = string
  default     = "0.1.0"
}

variable "resource_tag" {
  description = "Tags for the controller's identity and for every machine."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key in keys(var.resource_tag) : !can(regex("[<>%&\\\\?/,=]", key))])
    error_message = "resource_tag must have keys without < > % & \\ ? / , and =."
  }
}

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
  description = "Whether the charts are installed. Without it only Azure is prepared, for instance where Argo CD installs."
  type        = bool
  default     = true
}

variable "network_plugin_mode" {
  description = "overlay, or empty for a cluster whose pods have addresses of the subnet."
  type        = string
  default     = "overlay"
}

variable "network_dataplane" {
  description = "cilium or azure."
  type        = string
  default     = "cilium"
}

variable "node_identity_ids" {
  description = "Identities for nodes beside the kubelet's."
  type        = list(string)
  default     = []
}

variable "disk_encryption_set_id" {
  description = "Disk encryption set for the disks of nodes."
  type        = string
  default     = ""
}

variable "controller_environment" {
  description = "More variables for the controller, such as VNET_GUID; they win over those of this module."
  type        = map(string)
  default     = {}
}
