{{/*
Where the pods may run. A pod affinity, an anti-affinity or a spread constraint without a selector means our own pods, as
in Karpenter's chart.
*/}}
{{- define "dovetail.selector" -}}
matchLabels:
  {{- include "dovetail.selectorLabels" . | nindent 2 }}
{{- end -}}

{{- define "dovetail.affinity" -}}
{{- $own := include "dovetail.selector" . | fromYaml -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $side := list "podAffinity" "podAntiAffinity" -}}
{{- with get $affinity $side -}}
{{- range .requiredDuringSchedulingIgnoredDuringExecution -}}
{{- if not (hasKey . "labelSelector") }}{{ $_ := set . "labelSelector" $own }}{{ end -}}
{{- end -}}
{{- range .preferredDuringSchedulingIgnoredDuringExecution -}}
{{- if not (hasKey .podAffinityTerm "labelSelector") }}{{ $_ := set .podAffinityTerm "labelSelector" $own }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- define "dovetail.spread" -}}
{{- $own := include "dovetail.selector" . | fromYaml -}}
{{- $constraints := deepCopy .Values.topologySpreadConstraints -}}
{{- range $constraints -}}
{{- if not (hasKey . "labelSelector") }}{{ $_ := set . "labelSelector" $own }}{{ end -}}
{{- end -}}
{{- toYaml $constraints -}}
{{- end -}}
