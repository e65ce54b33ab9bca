package network_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"localpc/capabilities/network"
	"localpc/tunnel/wire"
)

// dns is a name server of the test's own. It gives each name of example.org
// the addresses that are listed, is silent about slow.example.org, and knows no
// other.
func dns(t *testing.T, a map[string][]string) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			name := strings.TrimSuffix(q.Name.String(), ".")
			if name == "slow.example.org" {
				continue
			}
			r := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
			if a[name] == nil {
				r.RCode = dnsmessage.RCodeNameError
			}
			for _, s := range a[name] {
				ip := net.ParseIP(s)
				h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
				switch four := ip.To4(); {
				case q.Type == dnsmessage.TypeA && four != nil:
					r.Answers = append(r.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: [4]byte(four)}})
				case q.Type == dnsmessage.TypeAAAA && four == nil:
					r.Answers = append(r.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip.To16())}})
				}
			}
			if out, err := r.Pack(); err == nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	})
	t.Cleanup(func() { pc.Close(); wg.Wait() })
	return pc.LocalAddr().String()
}

// short keeps the deadline that it was made with.
type short struct{ net.Conn }

func (short) SetDeadline(time.Time) error { return nil }

// ReadFrom and WriteTo are what package net knows a packet connection by.
func (s short) ReadFrom(b []byte) (int, net.Addr, error)  { n, err := s.Read(b); return n, nil, err }
func (s short) WriteTo(b []byte, _ net.Addr) (int, error) { return s.Write(b) }

func TestNamesAreLookedUpForReal(t *testing.T) {
	server := dns(t, map[string][]string{"www.example.org": {"203.0.113.9", "2606:4700::9"}, "inner.example.org": {"203.0.113.9", "fd00::9"}, "trap.example.org": {"::ffff:7f00:1", "127.0.0.1"}})
	r := newRig(t, func(o *network.Options) {
		o.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "udp", server)
			if err == nil {
				// Package net waits its own time for an answer.
				_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
				return short{c}, nil
			}
			return c, err
		}}
	})
	for host, want := range map[string]string{"www.example.org": "internet", "inner.example.org": "home", "trap.example.org": "local", "localhost": "local"} {
		d := describe(t, r, host, 443)
		if d.Action != want {
			t.Errorf("%s leads to %q: %v", host, d.Action, d.Details)
		}
		if text := strings.Join(d.Details, "\n"); host == "www.example.org" && (!strings.Contains(text, "203.0.113.9") || !strings.Contains(text, "2606:4700::9")) {
			t.Errorf("its addresses: %s", text)
		}
	}
	if _, err := r.Describe(t.Context(), call(t, connectTo("none.example.org", 80))); wire.CodeOf(err) != wire.CodePathNotFound {
		t.Errorf("a name that there is not: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := r.Describe(ctx, call(t, connectTo("slow.example.org", 80))); wire.CodeOf(err) != wire.CodePathNotFound || time.Since(begin) > 3*time.Second {
		t.Errorf("a silent name server: %v after %v", err, time.Since(begin))
	}
}
