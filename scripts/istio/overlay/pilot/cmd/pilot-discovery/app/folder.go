package app

import (
	"errors"

	"github.com/spf13/cobra"

	"istio.io/istio/pilot/pkg/bootstrap"
)

// NewRootCommandOfFolder is pilot-discovery whose subcommand "discovery" takes the folder of the objects as an
// argument. It is in this package because the flags' values are in a variable of it.
func NewRootCommandOfFolder() *cobra.Command {
	root := NewRootCommand()
	for _, command := range root.Commands() {
		if command.Name() == "discovery" {
			command.Args = cobra.ExactArgs(1)
			command.PreRunE = nil
			command.RunE = serveFolder
		}
	}
	return root
}

func serveFolder(_ *cobra.Command, arguments []string) error {
	if err := validateFlags(serverArgs); err != nil {
		return err
	}
	if err := serverArgs.Complete(); err != nil {
		return err
	}
	server, err := bootstrap.NewServer(serverArgs, bootstrap.ObjectsOfFolder(arguments[0]))
	if err != nil {
		return errors.Join(errors.New("istiod cannot be made"), err)
	}
	never := make(chan struct{})
	if err := server.Start(never); err != nil {
		return errors.Join(errors.New("istiod cannot be started"), err)
	}
	<-never
	return nil
}
