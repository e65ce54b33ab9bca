package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"localpc/tunnel/hub"
)

// serve runs the hub until ctx ends.
func (c *cli) serve(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("the hub cannot listen on %s: %w", c.listen, err)
	}
	address := c.public
	if address == "" {
		address = "http://" + l.Addr().String()
	}
	h, err := hub.New(context.WithoutCancel(ctx), hub.Options{Data: c.data, PublicURL: address, Log: slog.New(slog.NewTextHandler(c.errs, nil))})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintln(c.errs, "This address is open to the network without encryption. Put a proxy with TLS before it, and name its address with --public-url.")
	}
	fmt.Fprintf(c.out, "The hub is at %s\n", address)
	srv := h.Server()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	// Streams of machines and programs end with the hub, then the listener.
	err = errors.Join(err, h.Close(), srv.Close())
	if ctx.Err() != nil {
		<-served
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
