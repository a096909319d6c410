// Istiod that asks no cluster: Kubernetes objects come from a folder.
package main

import (
	"os"

	"istio.io/istio/pilot/cmd/pilot-discovery/app"
	"istio.io/istio/pkg/log"
)

func main() {
	log.EnableKlogWithCobra()
	if app.NewRootCommandOfFolder().Execute() != nil {
		os.Exit(1)
	}
}
