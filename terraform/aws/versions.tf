terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
    # From 3.1 on a release can take over what another installation left behind.
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.1"
    }
  }
}
