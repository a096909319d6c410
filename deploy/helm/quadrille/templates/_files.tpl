{{/*
/etc/quadrille of a gateway: one volume, so that a configuration and the files it names change atomically. Private keys
that are on key servers are omitted even if the Secret has them.
*/}}
{{- define "quadrille.files" -}}
{{- if not .Values.ingress.enabled }}
- configMap:
    name: {{ include "quadrille.fullname" . }}
    items: [{ key: quadrille.yaml, path: quadrille.yaml }]
{{- end }}
{{- range .Values.certificates }}
- secret:
    name: {{ .secretName }}
    items:
      - { key: tls.crt, path: {{ printf "certificates/%s/tls.crt" .secretName }} }
      {{- if not .keyServers }}
      - { key: tls.key, path: {{ printf "certificates/%s/tls.key" .secretName }} }
      {{- end }}
{{- end }}
{{- with .Values.keyServers.secretName }}
- secret:
    name: {{ . }}
    items:
      - { key: ca.crt, path: key-servers/ca.crt }
      - { key: tls.crt, path: key-servers/tls.crt }
      - { key: tls.key, path: key-servers/tls.key }
{{- end }}
{{- with .Values.fleet.secretName }}
- secret:
    name: {{ . }}
    items: [{ key: fleet.secret, path: fleet/fleet.secret }]
{{- with $.Values.fleet.redis.passwordSecretName }}
- secret:
    name: {{ . }}
    items: [{ key: password, path: fleet/redis-password }]
{{- end }}
{{- with $.Values.fleet.redis.caSecretName }}
- secret:
    name: {{ . }}
    items: [{ key: ca.crt, path: fleet/redis-ca.crt }]
{{- end }}
{{- end }}
{{- range .Values.files }}
- {{ ternary "secret" "configMap" (hasKey . "secretName") }}:
    name: {{ default .configMapName .secretName }}
    items: {{ toJson .items }}
{{- end }}
{{- end }}

{{/* Settings common to all pods of this chart; they meet the Pod Security Standard `restricted`. */}}
{{- define "quadrille.pod" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{/* The user of the image, which is also the group of the mounted files. */}}
{{- define "quadrille.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "quadrille.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Spreads pods over the available nodes: (dict "root" . "component" "gateway"). */}}
{{- define "quadrille.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "quadrille.selector" . | nindent 6 }}
{{- end }}
