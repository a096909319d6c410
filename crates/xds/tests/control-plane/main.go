// A control plane for the tests: go-control-plane's cache and server, controlled by commands on stdin, one JSON document
// per line. The response to each is a line {"done": true} or {"error": "..."}. Requests of gateways are written to stdout
// too, as {"request": {...}}, so that a test can see ACKs and NACKs.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	secret "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
)

// Maps every gateway to the same snapshot.
type all struct{}

func (all) ID(*core.Node) string { return "gateway" }

// A command on stdin.
type command struct {
	Set   *resources `json:"set"`
	Clear bool       `json:"clear"`
	// Name under which `set` is kept instead of being served.
	Keep string `json:"keep"`
	// Name of a kept snapshot to serve, which is faster than reading it again.
	Use string `json:"use"`
}

var (
	output sync.Mutex
	stdout = json.NewEncoder(os.Stdout)
)

func say(line any) {
	output.Lock()
	defer output.Unlock()
	_ = stdout.Encode(line)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "host:port, or unix:PATH")
	ads := flag.Bool("ads", true, "serve ADS: respond only after all names are subscribed to")
	flag.Parse()
	if err := run(*listen, *ads); err != nil {
		fmt.Fprintln(os.Stderr, "control-plane:", err)
		os.Exit(1)
	}
}

func run(listen string, ads bool) error {
	network, address := "tcp", listen
	if len(listen) > 5 && listen[:5] == "unix:" {
		network, address = "unix", listen[5:]
	}
	socket, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	snapshots := cache.NewSnapshotCache(ads, all{}, nil)
	served := grpc.NewServer()
	register(served, server.NewServer(context.Background(), snapshots, callbacks()))
	say(map[string]string{"listening": socket.Addr().String()})
	go func() { _ = served.Serve(socket) }()

	// The process exits when the test ends and closes its end of the pipe.
	kept := map[string]*cache.Snapshot{}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := obey(snapshots, kept, line); err != nil {
			say(map[string]string{"error": err.Error()})
		} else {
			say(map[string]bool{"done": true})
		}
	}
}

func obey(snapshots cache.SnapshotCache, kept map[string]*cache.Snapshot, line []byte) error {
	var wanted command
	if err := json.Unmarshal(line, &wanted); err != nil {
		return err
	}
	if wanted.Clear {
		snapshots.ClearSnapshot("gateway")
	}
	snapshot := kept[wanted.Use]
	if wanted.Set != nil {
		var err error
		if snapshot, err = wanted.Set.snapshot(); err != nil {
			return err
		}
	}
	if wanted.Keep != "" {
		kept[wanted.Keep] = snapshot
		return nil
	}
	if snapshot == nil {
		return nil
	}
	return snapshots.SetSnapshot(context.Background(), "gateway", snapshot)
}

func register(served *grpc.Server, with server.Server) {
	discovery.RegisterAggregatedDiscoveryServiceServer(served, with)
	cluster.RegisterClusterDiscoveryServiceServer(served, with)
	endpoint.RegisterEndpointDiscoveryServiceServer(served, with)
	listener.RegisterListenerDiscoveryServiceServer(served, with)
	route.RegisterRouteDiscoveryServiceServer(served, with)
	secret.RegisterSecretDiscoveryServiceServer(served, with)
}

func callbacks() server.Callbacks {
	return server.CallbackFuncs{
		StreamRequestFunc: func(stream int64, request *discovery.DiscoveryRequest) error {
			say(map[string]any{"request": map[string]any{
				"dialect": "sotw", "stream": stream, "type": request.TypeUrl, "version": request.VersionInfo,
				"nonce": request.ResponseNonce, "names": request.ResourceNames, "node": request.Node.GetId(),
				"error": request.ErrorDetail.GetMessage(),
			}})
			return nil
		},
		StreamDeltaRequestFunc: func(stream int64, request *discovery.DeltaDiscoveryRequest) error {
			say(map[string]any{"request": map[string]any{
				"dialect": "delta", "stream": stream, "type": request.TypeUrl, "known": request.InitialResourceVersions,
				"nonce": request.ResponseNonce, "names": request.ResourceNamesSubscribe,
				"unsubscribed": request.ResourceNamesUnsubscribe, "node": request.Node.GetId(),
				"error": request.ErrorDetail.GetMessage(),
			}})
			return nil
		},
	}
}
