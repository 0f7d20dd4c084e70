# Every input, on a cluster in a network of its own whose disks are encrypted with a key of its own.

variable "subnet_id" {
  description = "The subnet of the cluster's nodes."
  type        = string
}

variable "disk_encryption_set_id" {
  description = "The set whose key encrypts disks."
  type        = string
}

data "azurerm_kubernetes_cluster" "this" {
  name                = "aks-prod"
  resource_group_name = "rg-aks-prod"
}

provider "azurerm" {
  features {}
}

provider "helm" {
  kubernetes = {
    host                   = data.azurerm_kubernetes_cluster.this.kube_config[0].host
    cluster_ca_certificate = base64decode(data.azurerm_kubernetes_cluster.this.kube_config[0].cluster_ca_certificate)
    # Where local accounts are switched off.
    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "kubelogin"
      args        = ["get-token", "--login", "azurecli", "--server-id", "6dae42f8-4368-4678-94ff-3960e28e3630"]
    }
  }
}

module "karpenter" {
  source = "../.."

  aks_cluster_name       = data.azurerm_kubernetes_cluster.this.name
  resource_group_name    = data.azurerm_kubernetes_cluster.this.resource_group_name
  vnet_subnet_id         = var.subnet_id
  ssh_public_key         = file("~/.ssh/id_rsa.pub")
  bootstrap_token_secret = "bootstrap-token-abcdef"
  environment            = "prod"
  namespace              = "kube-system"
  service_account_name   = "karpenter-sa"
  helm_chart_version     = "0.1.0"

  # The charts beside the module are used without this.
  helm_repository = "oci://example.azurecr.io/charts"

  image = {
    repository = "example.azurecr.io/dovetail"
    tag        = "0.1.0"
    digest     = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
  }

  helm_values = [yamlencode({
    serviceMonitor = { enabled = true }
    controller     = { resources = { requests = { cpu = "500m", memory = "512Mi" }, limits = { memory = "1Gi" } } }
  })]

  install_controller     = true
  network_plugin_mode    = "overlay"
  network_dataplane      = "cilium"
  node_identity_ids      = []
  disk_encryption_set_id = var.disk_encryption_set_id
  controller_environment = { VNET_GUID = "0a1b2c3d-0000-4000-8000-000000000000" }

  resource_tag = {
    ManagedBy = "Terraform"
    Team      = "platform-engineering"
  }
}

output "commands" {
  value = module.karpenter.commands
}
