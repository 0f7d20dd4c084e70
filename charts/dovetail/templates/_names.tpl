{{/*
The names. A release called karpenter keeps every name, label and selector that Karpenter's chart gave it, so that
`helm upgrade karpenter charts/dovetail` swaps the controller in place, and `helm rollback` swaps it back.
*/}}
{{- define "dovetail.name" -}}
{{- if .Values.nameOverride -}}
{{- .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains "karpenter" .Release.Name -}}
karpenter
{{- else -}}
{{- .Chart.Name -}}
{{- end -}}
{{- end -}}

{{- define "dovetail.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "dovetail.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "dovetail.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "dovetail.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "dovetail.selectorLabels" -}}
app.kubernetes.io/name: {{ include "dovetail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dovetail.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "dovetail.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
What every object has beside its name: `dict "root" $ "annotations" …` for more annotations than all have, "labels" for
more labels.
*/}}
{{- define "dovetail.metadata" -}}
labels:
  {{- include "dovetail.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The account that every binding is for. */}}
{{- define "dovetail.subjects" -}}
- kind: ServiceAccount
  name: {{ include "dovetail.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "dovetail.image" -}}
{{- $image := .Values.controller.image -}}
{{- if regexMatch "(^|/)karpenter/controller$" $image.repository -}}
{{- fail (printf "controller.image.repository is %q, which is Karpenter's controller: leave it out or name an image of Dovetail. After `helm upgrade --reuse-values` use --reset-then-reuse-values, which forgets the defaults of the other chart." $image.repository) -}}
{{- end -}}
{{- $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "dovetail.containerName" -}}
{{- .Values.controller.containerName | default "controller" -}}
{{- end -}}
