{{/* Arguments of `quadrille kubernetes`, which serves the Ingress objects of the cluster. */}}
{{- define "quadrille.ingressArguments" -}}
{{- $ingress := .Values.ingress }}
{{- $own := printf "%s/%s" .Release.Namespace (include "quadrille.fullname" .) }}
- kubernetes
- --http=[::]:8080
- --https=[::]:8443
- --ingress-class={{ $ingress.class.name }}
- --controller-class={{ $ingress.class.controller }}
- --lease={{ $own }}
{{- range $ingress.namespaces }}
- --watch-namespace={{ . }}
{{- end }}
{{- with $ingress.configMap }}
- --configmap={{ . }}
{{- end }}
{{- with $ingress.defaultCertificate }}
- --default-ssl-certificate={{ . }}
{{- end }}
{{- range $ingress.publishAddresses }}
- --publish-status-address={{ . }}
{{- end }}
{{- if and $ingress.publishService (not $ingress.publishAddresses) }}
- --publish-service={{ $own }}
{{- end }}
- --admin={{ ternary "127.0.0.1" "0.0.0.0" .Values.hostNetwork }}:{{ .Values.admin.port }}
{{- if not .Values.hostNetwork }}
- --admin-host={{ include "quadrille.fullname" . }}-admin.{{ .Release.Namespace }}.svc
{{- end }}
- --lame-duck=0s
- --drain-timeout={{ .Values.shutdown.drainSeconds }}s
{{- if .Values.fleet.secretName }}
{{- $fleet := include "quadrille.fleet" . | fromYaml }}
- --session-tickets=fleet
- --session-cache={{ $fleet.cache }}
- --fleet-secret=/etc/quadrille/{{ $fleet.fleet_secret }}
{{- with $fleet.redis_password }}
- --redis-password=/etc/quadrille/{{ . }}
{{- end }}
{{- with $fleet.redis_ca }}
- --redis-ca=/etc/quadrille/{{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* What is read in watched namespaces, and written to objects there. */}}
{{- define "quadrille.ingressRules" -}}
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [services, secrets, configmaps]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
