{{/*
The rules of a role in files/, which are those of deploy/: `list $ NAME`. A test runs the
controller under exactly these, so they are read and not written again.
*/}}
{{- define "dovetail.rules" -}}
{{- $wanted := index . 1 -}}
{{- $found := false -}}
{{- range $path, $content := (index . 0).Files.Glob "files/{page,rbac*}.yaml" -}}
{{- range splitList "\n---\n" (toString $content) -}}
{{- $role := fromYaml . -}}
{{- if and (hasSuffix "Role" $role.kind) (eq $role.metadata.name $wanted) -}}
{{- $found = true -}}
{{- toYaml $role.rules -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $found }}{{ fail (printf "files have no role %s: the chart is incomplete" $wanted) }}{{ end -}}
{{- end -}}
