package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// signInLimit is how long a person may take.
const signInLimit = 10 * time.Minute

// Match is a short code of 4 random digits, for both screens.
func Match() string {
	n, err := rand.Int(rand.Reader, big.NewInt(10000))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return fmt.Sprintf("%04d", n)
}

// Browser signs in with the person's browser: code and PKCE (RFC 7636) over a
// loopback redirect (RFC 8252). begun is told the page to open, and until when
// the sign-in waits; agreed, that the browser has come back. match is shown on
// the page and must be the same here; "" for none. The error is one of those
// above, ctx's, or the network's.
func Browser(ctx context.Context, hc *http.Client, s Server, match string, begun func(page string, until time.Time), agreed func()) (Tokens, error) {
	until := time.Now().Add(signInLimit)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	l, err := listen(s.FirstPort, s.LastPort)
	if err != nil {
		return Tokens{}, err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	back := &callback{state: rand.Text(), issuer: s.Issuer, named: s.NamesIssuer, port: port, result: make(chan answer, 1)}
	server := &http.Server{Handler: back, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // ends with Close
	defer func() {
		// The last page is still on its way to the browser.
		bye, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		if server.Shutdown(bye) != nil {
			server.Close()
		}
		<-done
	}()

	config := s.config()
	config.RedirectURL = "http://" + s.RedirectHost + ":" + port + "/callback"
	verifier := oauth2.GenerateVerifier()
	options := append(s.aboutMachine(), oauth2.S256ChallengeOption(verifier))
	if match != "" {
		options = append(options, oauth2.SetAuthURLParam("match", match))
	}
	begun(config.AuthCodeURL(back.state, options...), until)
	var a answer
	select {
	case a = <-back.result:
	case <-ctx.Done():
		return Tokens{}, ended(ctx)
	}
	if a.err != nil {
		return Tokens{}, a.err
	}
	agreed()
	octx, c := oauth2Context(ctx, hc, time.Now)
	tok, err := config.Exchange(octx, a.code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Tokens{}, refusal(err)
	}
	return s.tokens(tok, c), nil
}

// ended is why a sign-in's context is over.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrExpired
	}
	return ctx.Err()
}

// refusal gives a token endpoint's answer its meaning.
func refusal(err error) error {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) {
		return err
	}
	switch re.ErrorCode {
	case "access_denied":
		return fmt.Errorf("%w: %w", ErrDeclined, err)
	case "expired_token":
		return fmt.Errorf("%w: %w", ErrExpired, err)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// listen takes the first free port of a range on loopback; 0 is any.
func listen(first, last int) (net.Listener, error) {
	var errs []error
	for port := first; port <= last; port++ {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoPort, errors.Join(errs...))
}

type answer struct {
	code string
	err  error
}

// callback is the page that the browser comes back to. It takes the one answer
// that knows the state; whatever else comes changes nothing.
type callback struct {
	state, issuer, port string
	named               bool // an answer names the issuer
	result              chan answer
}

// from tells whether an answer is of the server that was asked (RFC 9207).
func (b *callback) from(iss string) bool {
	if iss == "" {
		return !b.named
	}
	return b.issuer == "" || sameAddress(iss, b.issuer)
}

func (b *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	say := func(status int, title, words string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, page, title, title, words)
	}
	nothing := func(status int) { say(status, "There is nothing here", "You can close this page.") }
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || port != b.port || host != "127.0.0.1" && host != "localhost" {
		nothing(http.StatusMisdirectedRequest)
		return
	}
	if r.URL.Path != "/callback" {
		nothing(http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet {
		h.Set("Allow", http.MethodGet)
		nothing(http.StatusMethodNotAllowed)
		return
	}
	q := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1 || !b.from(q.Get("iss")) {
		say(http.StatusBadRequest, "This is another sign-in", "It is not the one that Local PC Executor waits for. You can close this page.")
		return
	}
	a := answer{code: q.Get("code")}
	title, words := "You have agreed", "You can close this page. Local PC Executor goes on by itself."
	switch {
	case q.Get("error") == "access_denied":
		a = answer{err: ErrDeclined}
		title, words = "Nothing was connected", "You can close this page. This computer was not signed in."
	case a.code == "":
		a = answer{err: fmt.Errorf("%w: %.100q", ErrRefused, q.Get("error"))}
		title, words = "Nothing was connected", "You can close this page. Local PC Executor says what to do."
	}
	select {
	case b.result <- a:
	default: // the browser has asked again
	}
	say(http.StatusOK, title, words)
}

// page looks like the hub's: the browser comes to it from there.
const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>%s – Local PC Executor</title>
<style>:root{color-scheme:light dark;--bg:#eff1f4;--win:#fff;--line:#e1e4e9;--ink:#1b1e24}
@media(prefers-color-scheme:dark){:root{--bg:#0e1014;--win:#1c1f26;--line:#333945;--ink:#eceff4}}
body{margin:0;background:var(--bg);color:var(--ink);font:.9375rem/1.5 system-ui,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:29rem;margin:3rem auto;padding:1.5rem;background:var(--win);border:1px solid var(--line);border-radius:10px}
h1{margin:0 0 1rem;font-size:1.25rem;line-height:1.3}p{margin:0}@media(max-width:32rem){main{margin:1rem}}</style>
<body><main><h1>%s</h1><p>%s</p></main></body></html>
`

// Open shows a page in the person's browser. The error says that none could be
// started; what the browser does then is not known.
func Open(ctx context.Context, page string) error {
	if u, err := url.Parse(page); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%.100q is no page to open", page)
	}
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		cmd = exec.Command("open", page)
	case "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", page)
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no display")
		}
		cmd = exec.Command("xdg-open", page)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Some openers stay for as long as the browser does, and the browser must
	// outlive this program: what has not failed soon has worked.
	failed := make(chan error, 1)
	go func() { failed <- cmd.Wait() }()
	select {
	case err := <-failed:
		return err
	case <-time.After(3 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// System names this computer's system in words: "Debian GNU/Linux 12, x86_64".
func System() string {
	arch := map[string]string{"amd64": "x86_64", "386": "x86"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return strings.TrimSpace(system()) + ", " + arch
}
