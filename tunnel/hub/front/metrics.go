package front

import (
	"crypto/subtle"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are told in Prometheus's form. It is a hub.Meter.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	http     *prometheus.CounterVec
	httpTook *prometheus.HistogramVec
	closes   *prometheus.CounterVec
	signIns  prometheus.Counter
	reused   prometheus.Counter
}

// Waits for a person are long, requests without one short.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// NewMetrics makes metrics that are all zero.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "localpc_hub_requests_total", Help: "Requests to computers that have ended, by message type and outcome."}, []string{"kind", "outcome"}),
		took:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "localpc_hub_request_duration_seconds", Help: "How long requests to computers took, with the time that a person was asked.", Buckets: buckets}, []string{"kind"}),
		http:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "localpc_hub_http_requests_total", Help: "HTTP requests that were answered, by face and status."}, []string{"kind", "status"}),
		httpTook: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "localpc_hub_http_request_duration_seconds", Help: "How long HTTP requests took.", Buckets: buckets}, []string{"kind"}),
		closes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "localpc_hub_websocket_closes_total", Help: "Ends of computers' connections, by close code; 1006 when there was none."}, []string{"code"}),
		signIns:  prometheus.NewCounter(prometheus.CounterOpts{Name: "localpc_hub_sign_ins_total", Help: "Sign-ins that were given their first tokens."}),
		reused:   prometheus.NewCounter(prometheus.CounterOpts{Name: "localpc_hub_refresh_reuse_total", Help: "Refresh tokens that came a second time; each ended its sign-in."}),
	}
	m.registry.MustRegister(m.requests, m.took, m.http, m.httpTook, m.closes, m.signIns, m.reused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Watch adds what the hub is asked for whenever the metrics are read.
func (m *Metrics) Watch(online func() int, size func() int64) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "localpc_hub_machines_online", Help: "Computers that are connected now."}, func() float64 { return float64(online()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "localpc_hub_database_bytes", Help: "Size of the database on the disk."}, func() float64 { return float64(size()) }))
}

// Request, Closed, SignIn and Reused are hub.Meter's.
func (m *Metrics) Request(kind, outcome string, took time.Duration) {
	m.requests.WithLabelValues(kind, outcome).Inc()
	m.took.WithLabelValues(kind).Observe(took.Seconds())
}

// Closed counts an end of a connection.
func (m *Metrics) Closed(code int) { m.closes.WithLabelValues(strconv.Itoa(code)).Inc() }

// SignIn counts a sign-in.
func (m *Metrics) SignIn() { m.signIns.Inc() }

// Reused counts a refresh token that came again.
func (m *Metrics) Reused() { m.reused.Inc() }

func (m *Metrics) answered(kind string, status int, took time.Duration) {
	m.http.WithLabelValues(kind, strconv.Itoa(status/100)+"xx").Inc()
	m.httpTook.WithLabelValues(kind).Observe(took.Seconds())
}

// Handler serves the metrics at /metrics, to those with the bearer token; ""
// asks for none.
func (m *Metrics) Handler(token string) http.Handler {
	serve := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "The metrics need their token.", http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, r)
	})
	return mux
}
