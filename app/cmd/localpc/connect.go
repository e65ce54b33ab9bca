package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"localpc/app/control"
	"localpc/app/settings"
	"localpc/app/setup"
	"localpc/app/snapshot"
	"localpc/consent"
)

// connectFlags are those of "connect".
type connectFlags struct {
	print, off bool
	other      bool   // any was given
	any        string // the name, trimmed
}

func connectFlagSet(c *cli, f *flag.FlagSet) {
	f.BoolVar(&c.connect.print, "print", false, "print what would be written, and write nothing")
	f.BoolVar(&c.connect.off, "off", false, "take it out again")
	f.Func("any", "the name of any other MCP client: print what it takes", func(name string) error {
		c.connect.other, c.connect.any = true, strings.TrimSpace(name)
		return nil
	})
	jsonFlag(c, f)
}

// clientsOf are the programs of the person who runs this one.
func clientsOf(a setup.Autostart) *setup.Clients {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return &setup.Clients{Book: a.Book, Exe: a.Exe, Data: a.Data, Home: home, System: runtime.GOOS, Env: os.Getenv}
}

// connect lists the programs on this computer, or connects one.
func connect(c *cli, args []string) error {
	other := c.connect.other
	if other && (len(args) > 0 || c.connect.print) {
		return usageError("connect --any NAME takes nothing else but --off")
	}
	if len(args) > 1 || len(args) == 0 && !other && (c.connect.print || c.connect.off) {
		return usageError("connect takes the name of one program, as localpc connect lists them")
	}
	cl, err := control.Dial(c.paths.Socket())
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := cl.Intend(snapshot.Intent{Kind: snapshot.LookForClients}); err != nil {
		return err
	}
	resp, err := cl.Do(control.Request{Op: control.OpStatus})
	if err != nil {
		return err
	}
	all := resp.Snapshot.Connect.Clients
	if len(all) == 0 {
		return fmt.Errorf("pair this computer first, with itself (localpc pair this) or with a hub of your own")
	}
	switch {
	case other && c.connect.off:
		return disconnectAny(c, resp.Snapshot)
	case other:
		return connectAny(c, resp.Snapshot.Hub)
	case len(args) == 0:
		return listClients(c, resp.Snapshot)
	}
	i := slices.IndexFunc(all, func(p snapshot.Client) bool { return p.ID == args[0] || strings.EqualFold(p.Name, args[0]) })
	if i < 0 {
		return usageError(fmt.Sprintf("there is no program %q; localpc connect lists them", args[0]))
	}
	p := all[i]
	switch {
	case c.connect.print:
		printClient(c, p)
		return nil
	case c.connect.off:
		return ask(c, snapshot.Intent{Kind: snapshot.DisconnectClient, Text: p.ID})
	case p.Problem != "":
		printClient(c, p)
		return fmt.Errorf("nothing was written to %s", p.File)
	}
	if err := ask(c, snapshot.Intent{Kind: snapshot.ConnectClient, Text: p.ID}); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Written to %s:\n", p.File)
	for _, line := range p.Lines {
		fmt.Fprintln(c.out, "  "+line)
	}
	printAround(c, p)
	return nil
}

func listClients(c *cli, s *snapshot.Snapshot) error {
	if c.json {
		return printJSON(c, s.Connect.Clients)
	}
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	for _, p := range s.Connect.Clients {
		state := "not found"
		if p.Found {
			state = "found"
		}
		if p.Connected {
			state = "connected"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.ID, p.Name, state, p.File)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var others []string
	for _, p := range s.Programs {
		if !slices.ContainsFunc(s.Connect.Clients, func(k snapshot.Client) bool { return k.Name == p.Name }) {
			others = append(others, consent.Visible(p.Name, false))
		}
	}
	if len(others) > 0 {
		fmt.Fprintln(c.out, "\nOthers that are connected: "+strings.Join(others, ", "))
	}
	fmt.Fprintln(c.out, "\nAny other MCP client: localpc connect --any NAME")
	return nil
}

// disconnectAny takes the keys of a program away that is not known here: all that
// bear its name, which is taken in other letters where only one is meant then.
func disconnectAny(c *cli, s *snapshot.Snapshot) error {
	var named, alike []snapshot.Program
	for _, p := range s.Programs {
		if p.Name == c.connect.any {
			named = append(named, p)
		}
		if strings.EqualFold(p.Name, c.connect.any) {
			alike = append(alike, p)
		}
	}
	if len(named) == 0 {
		named = alike
	}
	if len(named) == 0 {
		return fmt.Errorf("no program called %q is connected; localpc connect lists them", c.connect.any)
	}
	for _, p := range named {
		switch {
		case p.Name != named[0].Name:
			return fmt.Errorf("there are %q and %q; say which, letter by letter", named[0].Name, p.Name)
		case !p.CanDisconnect:
			return fmt.Errorf("%s is disconnected on the page Keys of your hub, %s", p.Name, s.Hub.Address)
		}
	}
	for _, p := range named {
		if err := ask(c, snapshot.Intent{Kind: snapshot.Disconnect, Text: p.ID}); err != nil {
			return err
		}
	}
	return nil
}

// connectAny prints what a program that is not known here takes. One that comes
// to the hub inside gets its key.
func connectAny(c *cli, hub snapshot.Hub) error {
	start, err := c.autostart()
	if err != nil {
		return err
	}
	programs := clientsOf(start)
	if programs == nil {
		return fmt.Errorf("your home directory is not known")
	}
	address := hub.Address
	if hub.Kind == settings.HubThis {
		address = ""
		if err := ask(c, snapshot.Intent{Kind: snapshot.MakeKey, Text: c.connect.any, Way: "bridge"}); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.out, "Put this where it keeps its MCP servers:")
	for _, line := range programs.Lines(c.connect.any, address, "") {
		fmt.Fprintln(c.out, "  "+line)
	}
	if address != "" {
		fmt.Fprintf(c.out, "It signs in at the hub in your browser. One that can't do that takes a key from %s/keys, in the header Authorization: Bearer e2b_…\n", address)
	}
	return nil
}

func printClient(c *cli, p snapshot.Client) {
	if p.Problem != "" {
		fmt.Fprintln(c.out, p.Problem)
	} else {
		fmt.Fprintf(c.out, "This goes into %s:\n", p.File)
	}
	for _, line := range p.Lines {
		fmt.Fprintln(c.out, "  "+line)
	}
	if p.Problem == "" {
		fmt.Fprintln(c.out, p.Next)
	}
	printAround(c, p)
}

// printAround says which of a program's own tools never ask here.
func printAround(c *cli, p snapshot.Client) {
	fmt.Fprintln(c.out, strings.TrimSpace(p.Around+" "+p.Off))
	for _, line := range p.OffLines {
		fmt.Fprintln(c.out, "  "+line)
	}
}
