package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/front"
	"localpc/tunnel/hub/store"
)

// patience is how long requests may take to end once the hub is to stop.
const patience = 20 * time.Second

// serving is what serve takes besides what every command does.
type serving struct {
	cert, key      string
	behindProxy    bool
	proxies        []string
	logFormat      string
	metrics, token string
}

func (s *serving) flags(f *flag.FlagSet) {
	f.StringVar(&s.cert, "tls-cert", "", "")
	f.StringVar(&s.key, "tls-key", "", "")
	f.BoolVar(&s.behindProxy, "behind-proxy", false, "")
	f.Func("trusted-proxy", "", func(v string) error { s.proxies = append(s.proxies, strings.Split(v, ",")...); return nil })
	f.StringVar(&s.logFormat, "log-format", "text", "")
	f.StringVar(&s.metrics, "metrics-listen", "", "")
	f.StringVar(&s.token, "metrics-token", "", "")
}

// serve runs the hub until ctx ends.
func (c *cli) serve(ctx context.Context) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	// What libraries say by themselves is heard when it is an error: the
	// sign-in's repeats, as warnings, whatever a stranger sent.
	slog.SetDefault(slog.New(c.handler(slog.LevelError)))
	config, proxies, err := c.door(log)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("the hub cannot listen on %s: another program does so already, perhaps the hub inside Local PC; name another port with --listen", c.listen)
	}
	if err != nil {
		return fmt.Errorf("the hub cannot listen on %s: %w", c.listen, err)
	}
	defer l.Close()
	if err := c.open(l, config != nil); err != nil {
		return err
	}
	scheme := "http://"
	if config != nil {
		scheme = "https://"
	}
	address := strings.TrimSuffix(c.public, "/")
	if address == "" {
		address = scheme + l.Addr().String()
	}
	metrics := front.NewMetrics()
	h, err := hub.New(context.WithoutCancel(ctx), hub.Options{Data: c.data, PublicURL: address, Pages: true, Log: log, Meter: metrics})
	if errors.Is(err, store.ErrRunning) {
		return fmt.Errorf("another hub is running on the data in %s; stop it, or name another folder with --data DIR", c.data)
	} else if err != nil {
		return err
	}
	metrics.Watch(h.Online, h.Size)
	stopMetrics, err := c.serveMetrics(ctx, metrics, log)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	defer stopMetrics()
	if err := c.noteListen(scheme, l); err != nil {
		return errors.Join(err, h.Close())
	}
	fmt.Fprintf(c.out, "The hub is at %s\n", address)
	if link, first := h.SetupURL(ctx); first {
		fmt.Fprintf(c.out, "Nobody owns it yet. Open this link to set it up; it is good once: %s\n", link)
	}

	srv := h.Server()
	srv.Handler = proxies.Handler(front.Log(log, metrics, srv.Handler))
	if config != nil {
		srv.TLSConfig = config
	}
	served := make(chan error, 1)
	go func() {
		if config != nil {
			served <- srv.ServeTLS(l, "", "")
		} else {
			served <- srv.Serve(l)
		}
	}()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for running := true; running; {
		select {
		case err := <-served: // it never ends by itself without a reason
			return errors.Join(err, h.Close())
		case <-hangup:
			log.Info("Nothing has to be read again: changed certificates are used by themselves")
		case <-ctx.Done():
			running = false
		}
	}
	log.Info("Stopping", "patience", patience.String())
	// Nothing new is taken; computers with nothing to do go, to come back to
	// the hub that follows; what is under way may end.
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	h.Drain()
	late := srv.Shutdown(patient)
	if late != nil {
		log.Warn("Requests were cut off", "err", late)
	}
	err = errors.Join(h.Close(), srv.Close())
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	log.Info("Stopped")
	return err
}

// logger writes to the standard error.
func (c *cli) logger() (*slog.Logger, error) {
	if f := c.serving.logFormat; f != "text" && f != "json" {
		return nil, errUsage(fmt.Sprintf("--log-format is text or json, not %q", f))
	}
	return slog.New(c.handler(slog.LevelInfo)), nil
}

func (c *cli) handler(level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if c.serving.logFormat == "json" {
		return slog.NewJSONHandler(c.errs, o)
	}
	return slog.NewTextHandler(c.errs, o)
}

// door is how the hub meets the network: with which certificates, and whose
// word about others it believes.
func (c *cli) door(log *slog.Logger) (*tls.Config, front.Proxies, error) {
	s := c.serving
	switch {
	case (s.cert == "") != (s.key == ""):
		return nil, nil, errUsage("--tls-cert and --tls-key belong together")
	case len(s.proxies) > 0 && !s.behindProxy:
		return nil, nil, errUsage("--trusted-proxy needs --behind-proxy")
	case s.metrics == "" && s.token != "":
		return nil, nil, errUsage("--metrics-token needs --metrics-listen")
	}
	var proxies front.Proxies
	var err error
	if s.behindProxy {
		if proxies, err = front.ParseProxies(s.proxies); err != nil {
			return nil, nil, err
		}
		if len(proxies) == 0 {
			proxies = front.Loopback
		}
	}
	if s.cert == "" {
		return nil, proxies, nil
	}
	config, err := front.TLS(s.cert, s.key, log)
	return config, proxies, err
}

// open refuses to send keys over a network in the clear, and to make up the
// address that others use.
func (c *cli) open(l net.Listener, encrypted bool) error {
	if loopback(l.Addr()) {
		return nil
	}
	switch {
	case !encrypted && !c.serving.behindProxy:
		return fmt.Errorf("%s is open to the network, and keys must not cross it unencrypted: give --tls-cert FILE and --tls-key FILE, or put a proxy with TLS before it and give --behind-proxy", l.Addr())
	case c.public == "":
		return errors.New("the address that people, programs and computers use is not known; name it with --public-url https://…")
	}
	return nil
}

func loopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// serveMetrics serves them beside the hub, never on its own address.
func (c *cli) serveMetrics(ctx context.Context, m *front.Metrics, log *slog.Logger) (stop func(), err error) {
	if c.serving.metrics == "" {
		return func() {}, nil
	}
	token := ""
	if c.serving.token != "" {
		data, err := os.ReadFile(c.serving.token)
		if err != nil {
			return nil, fmt.Errorf("the token for metrics cannot be read: %w", err)
		}
		if token = strings.TrimSpace(string(data)); len(token) < 16 {
			return nil, fmt.Errorf("the token in %s has fewer than 16 characters", c.serving.token)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.serving.metrics)
	if err != nil {
		return nil, fmt.Errorf("metrics cannot be served on %s: %w", c.serving.metrics, err)
	}
	if !loopback(l.Addr()) && token == "" {
		l.Close()
		return nil, fmt.Errorf("%s is open to the network: give a token for the metrics with --metrics-token FILE, or a loopback address", c.serving.metrics)
	}
	srv := &http.Server{Handler: m.Handler(token), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }() // ends with Close
	log.Info("Metrics are served", "address", l.Addr().String())
	return func() { _ = srv.Close(); <-done }, nil
}
