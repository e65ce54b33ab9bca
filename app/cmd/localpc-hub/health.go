package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// listenName is the file in the data that says where the hub listens.
const listenName = "hub.listen"

// noteListen writes down where health finds the hub.
func (c *cli) noteListen(scheme string, l net.Listener) error {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if err := os.WriteFile(filepath.Join(c.data, listenName), []byte(scheme+net.JoinHostPort(host, port)+"\n"), 0o600); err != nil {
		return fmt.Errorf("hub data: %w", err)
	}
	return nil
}

// health asks the hub that runs on the data whether it takes requests.
func (c *cli) health(ctx context.Context) error {
	data, err := os.ReadFile(filepath.Join(c.data, listenName))
	if err != nil {
		return errors.New("no hub has run on this data yet")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(string(data))+"/readyz", nil)
	if err != nil {
		return err
	}
	// It is this computer's own, whatever name its certificate has, and is told
	// nothing.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the hub does not answer: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the hub is not ready (%s)", resp.Status)
	}
	fmt.Fprintln(c.out, "The hub is well.")
	return nil
}
