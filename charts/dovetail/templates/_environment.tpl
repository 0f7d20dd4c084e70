{{/*
The controller's environment: Karpenter's variables, then those that only Dovetail knows.

What is written in the values is handed on, false and 0 too. Karpenter's chart leaves those out, so that
`ignoreDRARequests: false` has no effect there (README.md, differences). Empty text is left out, as there.
*/}}

{{/* One variable: `list $ NAME value`. The value may be a template. */}}
{{- define "dovetail.variable" -}}
{{- $value := index . 2 -}}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- name: {{ index . 1 }}
  value: {{ tpl (toString $value) (index . 0) | quote }}
{{- end -}}
{{- end -}}

{{/* Switches as `ReservedCapacity=true,…`, by name. */}}
{{- define "dovetail.gates" -}}
{{- $gates := list -}}
{{- range $name, $on := . -}}
{{- if not (kindIs "invalid" $on) }}{{ $gates = append $gates (printf "%s=%v" (title $name) $on) }}{{ end -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* Tags as `team=a,env=b`, by name. */}}
{{- define "dovetail.tags" -}}
{{- $tags := list -}}
{{- range $key, $value := . }}{{ $tags = append $tags (printf "%s=%s" $key (toString $value)) }}{{ end -}}
{{- join "," $tags -}}
{{- end -}}

{{- /* YAML reads a bare off as false. */ -}}
{{- define "dovetail.environment" -}}
{{- $settings := .Values.settings -}}
{{- $own := .Values.dovetail -}}
{{- $provider := $own.cloud -}}
- name: KUBERNETES_MIN_VERSION
  value: 1.19.0-0
- name: KARPENTER_SERVICE
  value: {{ include "dovetail.fullname" . }}
{{- include "dovetail.variable" (list . "LOG_LEVEL" .Values.logLevel) }}
{{- include "dovetail.variable" (list . "LOG_OUTPUT_PATHS" (join "," .Values.logOutputPaths)) }}
{{- include "dovetail.variable" (list . "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logErrorOutputPaths)) }}
{{- include "dovetail.variable" (list . "METRICS_PORT" .Values.controller.metrics.port) }}
{{- include "dovetail.variable" (list . "HEALTH_PROBE_PORT" .Values.controller.healthProbe.port) }}
- name: SYSTEM_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: {{ include "dovetail.containerName" . }}
      divisor: 1m
      resource: requests.cpu
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ include "dovetail.containerName" . }}
      divisor: "0"
      resource: limits.memory
{{- include "dovetail.variable" (list . "FEATURE_GATES" (include "dovetail.gates" $settings.featureGates)) }}
{{- range $pair := list
  (list "BATCH_MAX_DURATION" $settings.batchMaxDuration)
  (list "BATCH_IDLE_DURATION" $settings.batchIdleDuration)
  (list "PREFERENCE_POLICY" $settings.preferencePolicy)
  (list "MIN_VALUES_POLICY" $settings.minValuesPolicy)
  (list "SCHEDULER_CONFIG" $settings.schedulerConfig)
  (list "IGNORE_DRA_REQUESTS" $settings.ignoreDRARequests)
  (list "DISABLE_CLUSTER_STATE_OBSERVABILITY" $settings.disableClusterStateObservability)
}}
{{- include "dovetail.variable" (list $ (index $pair 0) (index $pair 1)) }}
{{- end }}
{{- if eq $provider "aws" }}
{{- if not $settings.clusterName }}
{{- fail "settings.clusterName is empty: it must be the name of the EKS cluster, for instance --set settings.clusterName=my-cluster" }}
{{- end }}
{{- include "dovetail.variable" (list . "AWS_FEATURE_GATES" (include "dovetail.gates" $settings.awsFeatureGates)) }}
{{- range $pair := list
  (list "CLUSTER_NAME" $settings.clusterName)
  (list "CLUSTER_ENDPOINT" $settings.clusterEndpoint)
  (list "CLUSTER_CA_BUNDLE" $settings.clusterCABundle)
  (list "ISOLATED_VPC" $settings.isolatedVPC)
  (list "EKS_CONTROL_PLANE" $settings.eksControlPlane)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent)
  (list "INTERRUPTION_QUEUE" $settings.interruptionQueue)
  (list "ENABLE_ZONAL_SHIFT" $settings.enableZonalShift)
  (list "RESERVED_ENIS" $settings.reservedENIs)
  (list "DISABLE_DRY_RUN" $settings.disableDryRun)
  (list "AMI_REFRESH_INTERVAL" $settings.amiRefreshInterval)
  (list "SUBNET_REFRESH_INTERVAL" $settings.subnetRefreshInterval)
}}
{{- include "dovetail.variable" (list $ (index $pair 0) (index $pair 1)) }}
{{- end }}
{{- end }}
{{- if eq $provider "azure" }}
{{- $given := list }}
{{- range $.Values.controller.env }}{{ $given = append $given .name }}{{ end }}
{{- $isNamed := or $settings.clusterName (has "CLUSTER_NAME" $given) }}
{{- $isPlaced := or $settings.clusterEndpoint (has "CLUSTER_ENDPOINT" $given) }}
{{- if not (or (and $isNamed $isPlaced) $.Values.controller.envFrom) }}
{{- fail "settings.clusterName and settings.clusterEndpoint are needed on AKS: its name, and the URL of its API server. What else Azure's provider needs goes into controller.env (docs/guide/azure.md)" }}
{{- end }}
{{- range $pair := list
  (list "CLUSTER_NAME" $settings.clusterName)
  (list "CLUSTER_ENDPOINT" $settings.clusterEndpoint)
  (list "CLUSTER_CA_BUNDLE" $settings.clusterCABundle)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent)
  (list "ADDITIONAL_TAGS" (include "dovetail.tags" $settings.tags))
}}
{{- include "dovetail.variable" (list $ (index $pair 0) (index $pair 1)) }}
{{- end }}
{{- end }}
{{- range $pair := list
  (list "CLOUD" $provider)
  (list "STEERING" (ternary "off" $own.steering (kindIs "bool" $own.steering)))
  (list "PACKING" $own.packing)
  (list "CONSOLIDATION" $own.consolidation)
  (list "FORESIGHT" $own.foresight)
  (list "INTERRUPTION_COST" $own.interruptionCost)
  (list "DECISION_RECORDS" $own.decisionRecords)
  (list "METRICS_PROFILE" $own.metricsProfile)
}}
{{- include "dovetail.variable" (list $ (index $pair 0) (index $pair 1)) }}
{{- end }}
{{- if $own.page.enabled }}
{{- include "dovetail.variable" (list . "PAGE_PORT" $own.page.port) }}
{{- end }}
{{- with $own.notify }}
{{- if .secretName }}
- name: NOTIFY_URL
  valueFrom:
    secretKeyRef:
      name: {{ .secretName }}
      key: {{ .secretKey }}
{{- include "dovetail.variable" (list $ "NOTIFY_FORMAT" .format) }}
{{- include "dovetail.variable" (list $ "NOTIFY_ON" (join "," .about)) }}
{{- include "dovetail.variable" (list $ "NOTIFY_EVERY" .every) }}
{{- end }}
{{- end }}
{{- if $own.flightRecorder.enabled }}
{{- include "dovetail.variable" (list . "FLIGHT_RECORDER" "/var/lib/dovetail/flight") }}
{{- end }}
{{- with .Values.controller.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}
