{{/*
Values that this chart does not know, one a line. They are told and not refused: a newer values file of Karpenter must
still install.
*/}}
{{- define "dovetail.strangers" -}}
{{- $known := .Files.Get "files/known-values.yaml" | fromYaml -}}
{{- $found := list -}}
{{- range $key := keys .Values | sortAlpha -}}
{{- if not (has $key (index $known "")) }}{{ $found = append $found $key }}{{ end -}}
{{- end -}}
{{- range $section, $names := $known -}}
{{- if $section -}}
{{- $values := $.Values -}}
{{- range splitList "." $section }}{{ $values = get $values . | default dict }}{{ end -}}
{{- range $key := keys $values | sortAlpha -}}
{{- if not (has $key $names) }}{{ $found = append $found (printf "%s.%s" $section $key) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join "\n" $found -}}
{{- end -}}
