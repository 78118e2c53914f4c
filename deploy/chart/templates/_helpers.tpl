{{- define "mpiboot.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Some names end with "-checkin" or "-mpijobs-view", and all must fit into 63 characters. */}}
{{- define "mpiboot.fullname" -}}
{{- $name := include "mpiboot.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "mpiboot.image" -}}
{{- .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "mpiboot.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "mpiboot.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* These labels are also the selector of the Deployment and of the Service. */}}
{{- define "mpiboot.labels" -}}
app.kubernetes.io/name: {{ include "mpiboot.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
