{{/* The gateway's quadrille.yaml: the user's configuration with certificates, the fleet and the admin address added. */}}
{{- define "quadrille.configuration" -}}
{{- $configuration := deepCopy .Values.configuration }}
{{- range $key := list "admin" "drain_timeout" "lame_duck" }}
{{- if hasKey $configuration $key }}
{{- fail (printf "configuration.%s is managed by the chart: set `admin.port` and `shutdown`" $key) }}
{{- end }}
{{- end }}
{{- $certificates := include "quadrille.certificates" . | fromYamlArray }}
{{- range $listener := $configuration.listeners }}
{{- if not (or (hasKey $listener "certificates") (include "quadrille.isPlain" $listener)) }}
{{- if not $certificates }}
{{- fail (printf "listener %v: name Secrets in `certificates`, or set `tls: false`" $listener.address) }}
{{- end }}
{{- $_ := set $listener "certificates" $certificates }}
{{- end }}
{{- end }}
{{- if .Values.fleet.secretName }}
{{- $fleet := include "quadrille.fleet" . | fromYaml }}
{{- $_ := set $configuration "resumption" (mergeOverwrite $fleet (default dict $configuration.resumption)) }}
{{- end }}
{{- /* In the node's network, no network policy restricts the address. */}}
{{- $host := ternary "127.0.0.1" "0.0.0.0" .Values.hostNetwork }}
{{- if and .Values.hostNetwork .Values.serviceMonitor.enabled }}
{{- fail "`serviceMonitor` cannot reach the admin address, which is on loopback with `hostNetwork`: disable one of them" }}
{{- end }}
{{- $admin := dict "address" (printf "%s:%v" $host .Values.admin.port) }}
{{- if not .Values.hostNetwork }}
{{- $_ := set $admin "hosts" (list (printf "%s-admin.%s.svc" (include "quadrille.fullname" .) .Release.Namespace)) }}
{{- end }}
{{- $_ := set $configuration "admin" $admin }}
{{- /* Kubernetes takes a pod out by itself, while `preStop` waits. */}}
{{- $_ := set $configuration "lame_duck" "0s" }}
{{- $_ := set $configuration "drain_timeout" (printf "%vs" .Values.shutdown.drainSeconds) }}
{{- toYaml $configuration }}
{{- end }}

{{/* YAML reads `off` as false. */}}
{{- define "quadrille.isPlain" -}}
{{- if and (hasKey . "tls") (has (toString .tls) (list "false" "off")) }}yes{{ end }}
{{- end }}

{{- define "quadrille.certificates" -}}
{{- range .Values.certificates }}
- chain: {{ printf "certificates/%s/tls.crt" .secretName }}
  {{- if .keyServers }}
  key:
    keyless:
      servers: {{ include "quadrille.keyServers" $ }}
      ca: key-servers/ca.crt
      certificate: key-servers/tls.crt
      key: key-servers/tls.key
  {{- else }}
  key: {{ printf "certificates/%s/tls.key" .secretName }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The addresses of the key servers, as a JSON list. */}}
{{- define "quadrille.keyServers" -}}
{{- if not .Values.keyServers.secretName }}
{{- fail "a certificate has `keyServers: true`: set `keyServers.secretName` to the gateways' own certificate" }}
{{- end }}
{{- $addresses := .Values.keyServers.addresses }}
{{- if and (not $addresses) .Values.keyServer.enabled }}
{{- $name := printf "%s-key-server" (include "quadrille.fullname" .) }}
{{- range $ordinal := until (int .Values.keyServer.replicas) }}
{{- $host := printf "%s-%d.%s.%s.svc" $name $ordinal $name $.Release.Namespace }}
{{- $addresses = append $addresses (printf "%s:%v" $host $.Values.keyServer.port) }}
{{- end }}
{{- end }}
{{- if not $addresses }}
{{- fail "a certificate has `keyServers: true`: set `keyServers.addresses` or `keyServer.enabled`" }}
{{- end }}
{{- toJson $addresses }}
{{- end }}

{{- define "quadrille.fleet" -}}
{{- $address := .Values.fleet.redis.address }}
{{- if and (not $address) .Values.redis.enabled }}
{{- $address = printf "redis://%s-redis.%s.svc:6379" (include "quadrille.fullname" .) .Release.Namespace }}
{{- end }}
{{- if not $address }}
{{- fail "a fleet needs Redis: set `fleet.redis.address` or `redis.enabled`" }}
{{- end }}
tickets: fleet
cache: {{ $address }}
fleet_secret: fleet/fleet.secret
{{- if .Values.fleet.redis.passwordSecretName }}
redis_password: fleet/redis-password
{{- end }}
{{- if .Values.fleet.redis.caSecretName }}
redis_ca: fleet/redis-ca.crt
{{- end }}
{{- end }}

{{/* Settings that take effect only after a restart. */}}
{{- define "quadrille.startConfiguration" -}}
{{- $configuration := include "quadrille.configuration" . | fromYaml }}
{{- pick $configuration "admin" "engine" "threads" "access_log" | toJson }}
{{- end }}

{{/* The distinct ports of the listeners, as a JSON list. */}}
{{- define "quadrille.ports" -}}
{{- $ports := list }}
{{- if .Values.ingress.enabled }}
{{- $ports = list 8443 8080 }}
{{- else }}
{{- range .Values.configuration.listeners }}
{{- $ports = append $ports (regexFind "[0-9]+$" (toString .address) | int) }}
{{- end }}
{{- end }}
{{- $ports | uniq | toJson }}
{{- end }}

{{/* The ports that also serve HTTP/3, as a JSON list. */}}
{{- define "quadrille.udpPorts" -}}
{{- $ports := list }}
{{- range (ternary (list) .Values.configuration.listeners .Values.ingress.enabled) }}
{{- if and .http3 (ne (toString .http3) "off") }}
{{- $ports = append $ports (regexFind "[0-9]+$" (toString .address) | int) }}
{{- end }}
{{- end }}
{{- $ports | uniq | toJson }}
{{- end }}
