package consent

import "fmt"

// Refusal is a typed no. Reason is one sentence for the agent and the log.
type Refusal struct {
	Outcome Outcome
	Reason  string
	// By is Decision.By of the decision it comes from; "" from a Prompter.
	By string
}

func (r *Refusal) Error() string { return r.Reason }

// Refuse makes a Refusal.
func Refuse(o Outcome, format string, args ...any) *Refusal {
	return &Refusal{Outcome: o, Reason: fmt.Sprintf(format, args...)}
}

// The sentences an agent is told. Each outcome has its own.
func deniedSentence(r Request) string {
	return fmt.Sprintf("The person at this computer declined: %s.", r.Title)
}

func expiredSentence(r Request) string {
	return fmt.Sprintf("Nobody answered in time: %s. Ask the person to be at the computer, then try again; they can also choose \"Allow next time\" in Activity.", r.Title)
}
