package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"localpc/app/machine"
	"localpc/app/settings"
	"localpc/tunnel/hub"
)

// embedded is the hub inside: machine.EmbeddedHub over tunnel/hub. Nothing
// listens until it is started.
type embedded struct {
	paths settings.Paths
	set   *settings.Store
	log   *slog.Logger

	mu      sync.Mutex
	hub     *hub.Hub      // guarded by mu; nil: stopped
	server  *http.Server  // guarded by mu
	done    chan struct{} // guarded by mu
	address string        // guarded by mu
}

func (e *embedded) Start(ctx context.Context) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hub != nil {
		return e.address, nil
	}
	addr := e.set.Get().EmbeddedHub
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	address := "http://" + l.Addr().String()
	h, err := hub.New(context.Background(), hub.Options{Data: e.paths.Hub(), PublicURL: address, Name: "This computer only", Log: e.log})
	if err != nil {
		l.Close()
		return "", err
	}
	server, done := h.Server(), make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with Stop
	}()
	e.hub, e.server, e.done, e.address = h, server, done, address
	return address, nil
}

func (e *embedded) Stop() {
	e.mu.Lock()
	h, server, done := e.hub, e.server, e.done
	e.hub = nil
	e.mu.Unlock()
	if h == nil {
		return
	}
	if err := server.Close(); err != nil {
		e.log.Warn("The hub's listener did not close", "err", err)
	}
	<-done
	if err := h.Close(); err != nil {
		e.log.Warn("The hub did not close", "err", err)
	}
}

// running returns the hub, starting it when it is not.
func (e *embedded) running(ctx context.Context) (*hub.Hub, error) {
	if _, err := e.Start(ctx); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hub, nil
}

func (e *embedded) MachineToken(ctx context.Context, id, name string) (string, error) {
	h, err := e.running(ctx)
	if err != nil {
		return "", err
	}
	return h.MachineToken(ctx, id, name)
}

func (e *embedded) PassingToken(ctx context.Context, id, name string) (string, error) {
	h, err := e.running(ctx)
	if err != nil {
		return "", err
	}
	return h.PassingToken(ctx, id, name)
}

func (e *embedded) RevokeMachine(ctx context.Context, id string) error {
	h, err := e.running(ctx)
	if err != nil {
		return err
	}
	return h.RevokeMachine(ctx, id)
}

func (e *embedded) MakeKey(ctx context.Context, name string) (string, error) {
	h, err := e.running(ctx)
	if err != nil {
		return "", err
	}
	return h.MakeKey(ctx, name)
}

// Keys lists the keys of a hub that runs; there is nothing to start it for.
func (e *embedded) Keys(ctx context.Context) ([]machine.Key, error) {
	e.mu.Lock()
	h := e.hub
	e.mu.Unlock()
	if h == nil {
		return nil, nil
	}
	all, err := h.Keys(ctx)
	var keys []machine.Key
	for _, k := range all {
		keys = append(keys, machine.Key{ID: k.ID, Name: k.Name, Created: k.Created, LastUsed: k.LastUsed})
	}
	return keys, err
}

func (e *embedded) RevokeKey(ctx context.Context, id string) error {
	h, err := e.running(ctx)
	if err != nil {
		return err
	}
	return h.RevokeKey(ctx, id)
}

func (e *embedded) Practice(ctx context.Context, id string) error {
	h, err := e.running(ctx)
	if err != nil {
		return err
	}
	return h.Practice(ctx, id)
}
