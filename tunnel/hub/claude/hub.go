package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pictureMeta is where a result tells of its picture (mcp.PictureMeta).
const pictureMeta = "localpc/picture"

// Hub says where the computer is had.
type Hub struct {
	Address string // https://hub.example, or http://127.0.0.1:4417
	Key     string // of the program
	HTTP    *http.Client
	// Name is what the program calls itself to the person; "" is "Claude".
	Name string
	// Waiting is told every few seconds what a call waits for.
	Waiting func(say string)
}

// Conn is a connection to a hub; it is a Caller.
type Conn struct {
	session *mcp.ClientSession

	mu sync.Mutex
	n  int // of calls; guarded by mu
}

var _ Caller = (*Conn)(nil)

// bearer adds a key to each request.
type bearer struct {
	key  string
	next http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return b.next.RoundTrip(r)
}

// moved says that an address leads to another one.
type moved struct{ to string }

func (m moved) Error() string {
	return "the address leads on to " + m.to + "; the key is not sent there: name that address itself if it is the right one"
}

// stay follows no redirection: the key is for the address that was named.
func stay(next *http.Request, _ []*http.Request) error {
	return moved{next.URL.Scheme + "://" + next.URL.Host}
}

// Dial connects to a hub. Close must be called.
func Dial(ctx context.Context, h Hub) (*Conn, error) {
	client := http.Client{}
	if h.HTTP != nil {
		client = *h.HTTP
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = bearer{h.Key, client.Transport}
	client.CheckRedirect = stay
	client.Timeout = 0 // a call takes as long as its person, and ctx ends it
	o := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if h.Waiting != nil {
		o.ProgressNotificationHandler = func(_ context.Context, n *mcp.ProgressNotificationClientRequest) { h.Waiting(n.Params.Message) }
	}
	c := mcp.NewClient(&mcp.Implementation{Name: orElse(h.Name, "Claude"), Version: "1"}, o)
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: strings.TrimRight(h.Address, "/") + "/mcp", HTTPClient: &client, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub %s: %w", h.Address, err)
	}
	return &Conn{session: s}, nil
}

// Close ends the connection; the session on the computer ends by itself.
func (c *Conn) Close() error { return c.session.Close() }

// Call calls a tool of the hub.
func (c *Conn) Call(ctx context.Context, tool string, args map[string]any) (Reply, error) {
	c.mu.Lock()
	c.n++
	token := c.n
	c.mu.Unlock()
	p := &mcp.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken(token)
	res, err := c.session.CallTool(ctx, p)
	if err != nil {
		return Reply{}, err
	}
	r := Reply{Failed: res.IsError}
	var said []string
	for _, part := range res.Content {
		switch part := part.(type) {
		case *mcp.TextContent:
			said = append(said, part.Text)
		case *mcp.ImageContent:
			r.Image, r.MIME = part.Data, part.MIMEType
		}
	}
	r.Text = strings.Join(said, "\n")
	if res.StructuredContent != nil {
		if r.Structured, err = json.Marshal(res.StructuredContent); err != nil {
			return Reply{}, err
		}
	}
	if told := res.Meta[pictureMeta]; told != nil {
		if r.Picture, err = json.Marshal(told); err != nil {
			return Reply{}, err
		}
	}
	return r, nil
}
