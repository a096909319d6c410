// gRPC's interoperability tests, common to all implementations
// (https://github.com/grpc/grpc/blob/master/doc/interop-test-descriptions.md), and its health service.
//
//	interop server [-cert FILE -key FILE]   prints its address, and sets the health given by lines of stdin
//	interop client -server ADDR -ca FILE -name HOST CASE...
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

func main() {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "server":
		err = serve(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "client":
		err = call(os.Args[2:])
	default:
		err = fmt.Errorf("say server or client")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	cert := flags.String("cert", "", "certificate chain; without it, plain text")
	key := flags.String("key", "", "its key")
	_ = flags.Parse(arguments)
	security := insecure.NewCredentials()
	if *cert != "" {
		var err error
		if security, err = credentials.NewServerTLSFromFile(*cert, *key); err != nil {
			return err
		}
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.Creds(security))
	testpb.RegisterTestServiceServer(server, interop.NewTestServer())
	states := health.NewServer()
	healthpb.RegisterHealthServer(server, states)
	go func() { _ = server.Serve(socket) }()
	fmt.Println(socket.Addr())
	// The server ends when the test closes the pipe.
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		service, state, _ := strings.Cut(lines.Text(), "=")
		states.SetServingStatus(service, healthpb.HealthCheckResponse_ServingStatus(healthpb.HealthCheckResponse_ServingStatus_value[state]))
	}
	return nil
}

// Test cases. Each exits the process if it fails.
var cases = map[string]func(context.Context, testpb.TestServiceClient){
	"empty_unary":      func(ctx context.Context, client testpb.TestServiceClient) { interop.DoEmptyUnaryCall(ctx, client) },
	"large_unary":      func(ctx context.Context, client testpb.TestServiceClient) { interop.DoLargeUnaryCall(ctx, client) },
	"client_streaming": func(ctx context.Context, client testpb.TestServiceClient) { interop.DoClientStreaming(ctx, client) },
	"server_streaming": func(ctx context.Context, client testpb.TestServiceClient) { interop.DoServerStreaming(ctx, client) },
	"ping_pong":        func(ctx context.Context, client testpb.TestServiceClient) { interop.DoPingPong(ctx, client) },
	"empty_stream":     func(ctx context.Context, client testpb.TestServiceClient) { interop.DoEmptyStream(ctx, client) },
	"deadline": func(ctx context.Context, client testpb.TestServiceClient) {
		interop.DoTimeoutOnSleepingServer(ctx, client)
	},
	"cancel_after_begin": func(ctx context.Context, client testpb.TestServiceClient) { interop.DoCancelAfterBegin(ctx, client) },
	"cancel_after_first": func(ctx context.Context, client testpb.TestServiceClient) {
		interop.DoCancelAfterFirstResponse(ctx, client)
	},
	"custom_metadata": func(ctx context.Context, client testpb.TestServiceClient) { interop.DoCustomMetadata(ctx, client) },
	"status_and_message": func(ctx context.Context, client testpb.TestServiceClient) {
		interop.DoStatusCodeAndMessage(ctx, client)
	},
	"special_message": func(ctx context.Context, client testpb.TestServiceClient) {
		interop.DoSpecialStatusMessage(ctx, client)
	},
}

func call(arguments []string) error {
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	server := flags.String("server", "", "host:port")
	ca := flags.String("ca", "", "trusted CA certificates")
	name := flags.String("name", "localhost", "the server's name")
	_ = flags.Parse(arguments)
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	security := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: *name})
	connection, err := grpc.NewClient(*server, grpc.WithTransportCredentials(security))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := testpb.NewTestServiceClient(connection)
	for _, name := range flags.Args() {
		run, known := cases[name]
		if !known {
			return fmt.Errorf("there is no case %q", name)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		run(ctx, client)
		cancel()
		fmt.Println(name)
	}
	return nil
}
