package tunneltest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// benchSize is what is moved each way.
const benchSize = 100 << 20

// BenchmarkTransfer moves 100 MiB each way over TLS on loopback: through the
// tunnel, and through a bare TLS connection of the same certificate and suite
// as the baseline. What the tunnel reaches of that is printed as a ratio.
func BenchmarkTransfer(b *testing.B) {
	cert, ca := certificate(b)
	bare := map[string]float64{}
	rate := func(b *testing.B, way string, baseline bool) {
		r := float64(benchSize) * float64(b.N) / b.Elapsed().Seconds()
		if baseline {
			bare[way] = r
		} else if bare[way] > 0 {
			b.ReportMetric(r/bare[way], "of-bare-TLS")
		}
	}
	for _, way := range []string{"down", "up"} {
		b.Run(way+"/bare", func(b *testing.B) {
			b.SetBytes(benchSize)
			bareTLS(b, cert, ca)
			rate(b, way, true)
		})
	}
	for _, bulk := range []bool{true, false} {
		name := map[bool]string{true: "bulk", false: "control"}[bulk]
		p, m := overTLS(b, cert, ca, bulk)
		m.size = benchSize
		b.Run("down/"+name, func(b *testing.B) {
			b.SetBytes(benchSize)
			for range b.N {
				s, err := p.Hub.Do(b.Context(), owners(p), wire.TypeFileRead, &wire.FileRead{SessionID: "s", Path: "p"})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = s.Recv()
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				s.Close()
			}
			rate(b, "down", false)
		})
		b.Run("up/"+name, func(b *testing.B) {
			b.SetBytes(benchSize)
			chunk := make([]byte, wire.MaxChunk)
			for range b.N {
				s, err := p.Hub.Do(b.Context(), owners(p), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s", Path: "p"})
				if err != nil {
					b.Fatal(err)
				}
				for sent := 0; sent < benchSize; sent += len(chunk) {
					if err := s.Send(&wire.FileChunk{Data: chunk, Last: sent+len(chunk) >= benchSize}); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := s.Recv(); err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
			rate(b, "up", false)
		})
	}
}

// zeros is a machine that gives and takes without looking.
type zeros struct{ size int64 }

func (z *zeros) handle(ctx context.Context, msg wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	switch msg.Payload.(type) {
	case *wire.FileRead:
		chunk := make([]byte, wire.MaxChunk)
		for sent := int64(0); sent < z.size; sent += int64(len(chunk)) {
			if err := x.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: chunk}); err != nil {
				return "", nil, err
			}
		}
		return wire.TypeAck, &wire.Empty{}, nil
	case *wire.FileWrite:
		for {
			c, err := tunnel.Chunk(ctx, x)
			if err != nil {
				return "", nil, err
			}
			if c.Last {
				break
			}
		}
	}
	return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
}

// overTLS is a hub behind TLS and a machine that knows its certificate.
func overTLS(b testing.TB, cert tls.Certificate, ca string, bulk bool) (*tunneltest.Pair, *zeros) {
	b.Helper()
	m := &zeros{}
	network, err := tunnel.NewNetwork(ca)
	if err != nil {
		b.Fatal(err)
	}
	p := tunneltest.OverTLS(b, cert, m.handle, tunneltest.Bulk(bulk), func(_ *hub.Options, o *tunnel.Options) { o.Network = network })
	if bulk {
		joined(b, p)
	}
	return p, m
}

// bareTLS copies over one TLS connection.
func bareTLS(b *testing.B, cert tls.Certificate, ca string) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(ca)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		b.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		chunk := make([]byte, 64<<10)
		for {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: pool})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 64<<10)
	b.ResetTimer()
	for range b.N {
		for got := 0; got < benchSize; {
			n, err := c.Read(buf)
			if err != nil {
				b.Fatal(err)
			}
			got += n
		}
	}
	b.StopTimer()
}

// certificate is one for 127.0.0.1 that signed itself, and the file that it is
// in.
func certificate(t testing.TB) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
