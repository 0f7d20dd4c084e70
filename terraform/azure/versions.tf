terraform {
  required_version = ">= 1.5"

  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 4.0"
    }
    # From 3.1 on a release can take over what another installation left behind.
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.1"
    }
  }
}
