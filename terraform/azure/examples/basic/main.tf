# The smallest: a cluster that exists, and nothing but what is required. No image is published yet, so yours is named.

data "azurerm_kubernetes_cluster" "this" {
  name                = "aks-dev"
  resource_group_name = "rg-aks-dev"
}

provider "azurerm" {
  features {}
}

provider "helm" {
  kubernetes = {
    host                   = data.azurerm_kubernetes_cluster.this.kube_config[0].host
    client_certificate     = base64decode(data.azurerm_kubernetes_cluster.this.kube_config[0].client_certificate)
    client_key             = base64decode(data.azurerm_kubernetes_cluster.this.kube_config[0].client_key)
    cluster_ca_certificate = base64decode(data.azurerm_kubernetes_cluster.this.kube_config[0].cluster_ca_certificate)
  }
}

module "karpenter" {
  source = "../.."

  aks_cluster_name       = data.azurerm_kubernetes_cluster.this.name
  resource_group_name    = data.azurerm_kubernetes_cluster.this.resource_group_name
  vnet_subnet_id         = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/MC_rg-aks-dev_aks-dev_eastus/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
  ssh_public_key         = file("~/.ssh/id_rsa.pub")
  bootstrap_token_secret = "bootstrap-token-abcdef"

  image = { repository = "example.azurecr.io/dovetail" }
}

output "commands" {
  value = module.karpenter.commands
}
