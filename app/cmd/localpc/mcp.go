package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"localpc/app/control"
	"localpc/app/settings"
	"localpc/tunnel"
)

// mcpKey is the environment variable with the key for --hub: what stands on a
// command line everybody on the computer can read.
const mcpKey = "LOCALPC_KEY"

type mcpFlags struct{ hub, program string }

func mcpFlagSet(c *cli, f *flag.FlagSet) {
	f.StringVar(&c.mcp.hub, "hub", "", "the hub to speak to")
	f.StringVar(&c.mcp.program, "program", "MCP client", "the name of the program that asks")
}

// notRunning is what a program hears, and tells its person, where there is
// nobody to ask.
const notRunning = "Local PC Executor is not running on this computer. Start it and try again."

// mcpCommand joins a client that speaks MCP over standard input and output to a
// hub, until its standard input ends.
func mcpCommand(c *cli, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Sprintf("mcp takes no %q", args[0]))
	}
	// Whoever started it is gone when this comes; nothing is left to say.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	b := &bridge{out: c.out, http: &http.Client{Transport: &http.Transport{}}, hub: c.hubInside, unreachable: notRunning}
	if c.mcp.hub != "" {
		address, err := settings.HubAddress(c.mcp.hub)
		if err != nil {
			return usageError("--hub is no hub's address: " + err.Error())
		}
		key := os.Getenv(mcpKey)
		if key == "" {
			return usageError("set " + mcpKey + " to a key of that hub; its page Keys makes one")
		}
		b.hub = func() (string, string, error) { return address, key, nil }
		b.unreachable = "The hub " + address + " cannot be reached from this computer. Try again later."
		if b.http, err = c.through(); err != nil {
			return err
		}
	}
	return b.run(ctx, os.Stdin)
}

// sentence is an error that a person reads as it is.
type sentence string

func (s sentence) Error() string { return string(s) }

// hubInside asks the program that runs for the hub inside it.
func (c *cli) hubInside() (address, key string, err error) {
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return "", "", err
	}
	defer cl.Close()
	resp, err := cl.Do(control.Request{Op: control.OpProgram, ID: c.mcp.program})
	if err != nil {
		return "", "", err
	}
	if resp.Hub == nil {
		return "", "", sentence("The Local PC Executor that runs is of another version. Quit it and start it again.")
	}
	return resp.Hub.Address, resp.Hub.Key, nil
}

// through is a client for a hub elsewhere, over the network as this computer's
// person set it up.
func (c *cli) through() (*http.Client, error) {
	ca := ""
	if set, err := settings.Load(c.paths); err == nil {
		ca = set.Get().CAFile
	}
	network, err := tunnel.NewNetwork(ca)
	if err != nil {
		return nil, err
	}
	client := network.Client()
	client.Timeout = 0 // a call takes as long as its person
	return client, nil
}
