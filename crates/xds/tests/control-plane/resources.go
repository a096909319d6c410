package main

import (
	"encoding/json"
	"fmt"

	clusters "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoints "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listeners "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routes "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	// Types that an Any may hold.
	_ "github.com/envoyproxy/go-control-plane/contrib/envoy/extensions/private_key_providers/cryptomb/v3alpha"
	_ "github.com/envoyproxy/go-control-plane/contrib/envoy/extensions/private_key_providers/qat/v3alpha"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// All resources of a snapshot, in protobuf's JSON.
type resources struct {
	Version   string            `json:"version"`
	Clusters  []json.RawMessage `json:"clusters"`
	Endpoints []json.RawMessage `json:"endpoints"`
	Listeners []json.RawMessage `json:"listeners"`
	Routes    []json.RawMessage `json:"routes"`
	Secrets   []json.RawMessage `json:"secrets"`
}

func (all *resources) snapshot() (*cache.Snapshot, error) {
	read := map[resource.Type][]types.Resource{}
	for _, kind := range []struct {
		url  resource.Type
		json []json.RawMessage
		make func() proto.Message
	}{
		{resource.ClusterType, all.Clusters, func() proto.Message { return &clusters.Cluster{} }},
		{resource.EndpointType, all.Endpoints, func() proto.Message { return &endpoints.ClusterLoadAssignment{} }},
		{resource.ListenerType, all.Listeners, func() proto.Message { return &listeners.Listener{} }},
		{resource.RouteType, all.Routes, func() proto.Message { return &routes.RouteConfiguration{} }},
		{resource.SecretType, all.Secrets, func() proto.Message { return &tls.Secret{} }},
	} {
		read[kind.url] = []types.Resource{}
		for _, text := range kind.json {
			message := kind.make()
			if err := protojson.Unmarshal(text, message); err != nil {
				return nil, fmt.Errorf("%s: %w", kind.url, err)
			}
			read[kind.url] = append(read[kind.url], message)
		}
	}
	return cache.NewSnapshot(all.Version, read)
}
