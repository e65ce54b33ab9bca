// Package front is what stands before step 1 where a hub serves a network and
// not only its own computer: certificates that may be exchanged while it runs,
// what proxies say of whom they speak for, the log of requests, and metrics.
package front

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLS serves the certificate of two PEM files, TLS 1.2 or newer. Each new
// connection looks at the files, so that a renewed certificate is used without
// a restart; while they do not fit together, as in the middle of a renewal,
// the last good one is used, and so it is instead of one that has expired. The
// error names the file.
func TLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.load(c.stamp()); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu
	seen    stamp            // the files that were looked at last; guarded by mu
}

// stamp tells one state of the two files from another.
type stamp struct {
	certTime, keyTime time.Time
	certSize, keySize int64
}

// stamp follows links: the usual way of renewal sets them anew.
func (c *certificate) stamp() (s stamp) {
	if info, err := os.Stat(c.certFile); err == nil {
		s.certTime, s.certSize = info.ModTime(), info.Size()
	}
	if info, err := os.Stat(c.keyFile); err == nil {
		s.keyTime, s.keySize = info.ModTime(), info.Size()
	}
	return s
}

func (c *certificate) load(s stamp) error {
	c.seen = s
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	var path *os.PathError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("the certificate cannot be read: %w", err)
	case err != nil:
		return fmt.Errorf("the certificate in %s and the key in %s cannot be used together: %w", c.certFile, c.keyFile, err)
	}
	if now := time.Now(); now.After(cert.Leaf.NotAfter) {
		err := fmt.Errorf("the certificate in %s expired on %s", c.certFile, cert.Leaf.NotAfter.Format(time.DateOnly))
		if c.current != nil && now.Before(c.current.Leaf.NotAfter) {
			return err
		}
		c.log.Warn("Certificate is not good any more, and nobody will connect", "err", err)
	}
	c.current = &cert
	return nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stamp(); s != c.seen {
		if err := c.load(s); err != nil {
			c.log.Warn("Changed certificate cannot be used yet", "err", err)
		} else {
			c.log.Info("Changed certificate is used")
		}
	}
	return c.current, nil
}
