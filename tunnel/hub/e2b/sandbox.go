package e2b

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/e2b/filesystem"
	"localpc/tunnel/hub/e2b/process"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// maxRPCBody bounds one call of a process or file service: maxInput, as it is
// written in JSON, and what is around it.
const (
	maxRPCBody = maxInput/3*4 + 1<<20
	maxInput   = 9 << 20
)

// timeoutHeader is how long the process may live, which the RPC library would
// take for how long the call may.
const timeoutHeader = "Connect-Timeout-Ms"

// call is one call to a sandbox.
type call struct {
	sandbox store.Sandbox
	arrived time.Time
	timeout time.Duration // of timeoutHeader; 0 is none
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// Sandbox serves what an SDK asks of a sandbox. The sandbox is named by the
// E2b-Sandbox-Id header, by /by-id/ID before the path, or, for a signed file
// address, by whose signature it is.
func (f *Face) Sandbox() http.Handler {
	mux := http.NewServeMux()
	options := []connect.HandlerOption{connect.WithReadMaxBytes(maxRPCBody), connect.WithRecover(f.recovered)}
	mux.Handle(process.NewProcessHandler(processes{f}, options...))
	mux.Handle(filesystem.NewFilesystemHandler(directories{f}, options...))
	mux.HandleFunc("GET /files", f.download) // and HEAD
	mux.HandleFunc("POST /files", f.upload)
	mux.HandleFunc("GET /health", f.health)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusNotFound, "There is nothing at this address.")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{arrived: time.Now()}
		if s := r.Header.Get(timeoutHeader); s != "" {
			ms, err := strconv.ParseUint(s, 10, 31)
			if err != nil {
				writeError(w, http.StatusBadRequest, "The "+timeoutHeader+" header is not a number of milliseconds.")
				return
			}
			c.timeout = time.Duration(ms) * time.Millisecond
		}
		r = r.Clone(context.WithValue(r.Context(), callKey{}, c))
		r.Header.Del(timeoutHeader)
		id := r.Header.Get("E2b-Sandbox-Id")
		if rest, ok := strings.CutPrefix(r.URL.Path, "/by-id/"); ok {
			var path string
			id, path, _ = strings.Cut(rest, "/")
			r.URL.Path, r.URL.RawPath = "/"+path, ""
		}
		if port := r.Header.Get("E2b-Sandbox-Port"); port != "" && port != "49983" {
			noPort(w, port)
			return
		}
		if !f.admit(w, r, c, id) {
			return
		}
		if isRPC(r) && r.ContentLength > maxRPCBody {
			// The RPC library would call it too many requests.
			_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
			failed(w, r, wire.Errorf(wire.CodeTooLarge, "At most %d MiB can be sent to a command in one call; send them in several.", maxInput>>20))
			return
		}
		// GET /health answers for one that does not run, too.
		if r.URL.Path != "/health" && !f.awake(w, r, c) {
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// isRPC tells whether a call wants its error in the form of the RPC library,
// which takes every GET, and every upload of bytes, for one of its own.
func isRPC(r *http.Request) bool {
	service, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return r.Method != http.MethodGet && (service == process.ProcessName || service == filesystem.FilesystemName) && connect.NewErrorWriter().IsSupported(r)
}

// awake tells whether the sandbox runs. One that is paused, and asked for that
// at its start, goes on now.
func (f *Face) awake(w http.ResponseWriter, r *http.Request, c *call) bool {
	switch {
	case c.sandbox.Ended:
		f.notRunning(w, r)
	case !c.sandbox.Paused:
		return true
	case !c.sandbox.AutoResume:
		failed(w, r, errPaused)
	default:
		b, _, err := f.wake(r.Context(), c.sandbox.ID, 0)
		if err == nil {
			c.sandbox = b
			return true
		}
		if errors.Is(err, store.ErrNotFound) || wire.CodeOf(err) == wire.CodeSessionNotOpen {
			f.notRunning(w, r)
		} else {
			failed(w, r, err)
		}
	}
	return false
}

// failed answers with err, in the form that the call reads.
func failed(w http.ResponseWriter, r *http.Request, err error) {
	if isRPC(r) {
		_ = connect.NewErrorWriter().Write(w, r, rpcError(err))
		return
	}
	httpError(w, err)
}

// notRunning says that the sandbox has ended in the way that the SDKs know.
func (f *Face) notRunning(w http.ResponseWriter, r *http.Request) {
	const text = "The sandbox is not running any more."
	if isRPC(r) {
		_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnavailable, sentence(text)))
		return
	}
	writeError(w, http.StatusBadGateway, text)
}

// admit finds the sandbox and checks the right to use it: its access token, or
// a signature for /files.
func (f *Face) admit(w http.ResponseWriter, r *http.Request, c *call, id string) bool {
	var err error
	switch token := r.Header.Get("X-Access-Token"); {
	case id != "" && token != "":
		if !same(token, f.accessToken(id)) {
			err = store.ErrNotFound
			break
		}
		c.sandbox, err = f.o.Store.Sandbox(r.Context(), id)
	case r.URL.Path == "/files" && r.URL.Query().Has("signature"):
		if !f.callers.allow(r) {
			w.Header().Set("Retry-After", "1")
			writeError(w, http.StatusTooManyRequests, "Too many signed addresses were asked for at once; try again in a moment.")
			return false
		}
		c.sandbox, err = f.signed(r, id)
	default:
		err = store.ErrNotFound
	}
	if err == nil {
		return true
	}
	if !errors.Is(err, store.ErrNotFound) {
		f.o.Log.Error("Access could not be checked", "err", err)
		httpError(w, err)
		return false
	}
	const text = "The access token of a sandbox, or a good signature, is needed."
	if isRPC(r) {
		_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnauthenticated, sentence(text)))
	} else {
		writeError(w, http.StatusUnauthorized, text)
	}
	return false
}

// health tells whether the sandbox can be used; 502 is what the SDKs take for
// "not running".
func (f *Face) health(w http.ResponseWriter, r *http.Request) {
	b := callOf(r.Context()).sandbox
	switch {
	case b.Ended:
		writeError(w, http.StatusBadGateway, "The sandbox is not running any more.")
	case b.Paused:
		writeError(w, http.StatusBadGateway, "The sandbox is paused.")
	case !f.o.Backend.Online(b):
		writeError(w, http.StatusBadGateway, "The computer is not connected to the hub.")
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// checkUser refuses a user that is not the sandbox's own: everything runs as
// the person, who is "user" to the SDKs.
func checkUser(name string) error {
	if name == "" || name == "user" {
		return nil
	}
	return fmt.Errorf("there is no user %q in this sandbox; leave the user out", name)
}

// rpcUser is the user that a call names, in the form of basic authentication.
func rpcUser(ctx context.Context) error {
	info, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return nil
	}
	name, _, _ := (&http.Request{Header: info.RequestHeader()}).BasicAuth()
	if err := checkUser(name); err != nil {
		return connect.NewError(connect.CodeUnauthenticated, err)
	}
	return nil
}

func queryUser(v url.Values) error { return checkUser(v.Get("username")) }

func (f *Face) recovered(_ context.Context, spec connect.Spec, _ http.Header, p any) error {
	f.o.Log.Error("Call failed by a fault", "procedure", spec.Procedure, "panic", fmt.Sprint(p))
	return connect.NewError(connect.CodeInternal, sentence("Something went wrong in the hub; its log says what."))
}
