//go:build unix

//lint:file-ignore SA1019 the suite asks for what is going out of use, too

package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the conformance suite expects to find on a server beside its own: tools,
// prompts and resources with fixed names and answers. They are registered on
// the hub's own face, behind its own doors.

// dot is a PNG of one pixel, silence a WAV of no sample.
var (
	dot     = bytesOf("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==")
	silence = bytesOf("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")
)

func bytesOf(b64 string) []byte {
	b, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		panic(err)
	}
	return b
}

type (
	toolResult = sdk.CallToolResult
	toolCall   = sdk.CallToolRequest
)

func content(c ...sdk.Content) *toolResult { return &toolResult{Content: c} }
func says(s string) *sdk.TextContent       { return &sdk.TextContent{Text: s} }

func fixtures(o *sdk.ServerOptions) func(*sdk.Server) {
	o.Capabilities = nil // what there is, is offered
	o.CompletionHandler = func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
		return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"one"}}}, nil
	}
	o.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error { return nil }
	o.UnsubscribeHandler = func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
	return func(s *sdk.Server) {
		simpleFixtures(s)
		schemaFixtures(s)
		changeFixtures(s)
		inputFixtures(s)
		promptFixtures(s)
		resourceFixtures(s)
	}
}

// fixture adds a tool without arguments that matter.
func fixture(s *sdk.Server, name string, do func(context.Context, *toolCall) (*toolResult, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: "A fixture of the conformance suite: " + name}, func(ctx context.Context, r *toolCall, _ any) (*toolResult, any, error) {
		res, err := do(ctx, r)
		return res, nil, err
	})
}

func fixed(s *sdk.Server, name string, c ...sdk.Content) {
	fixture(s, name, func(context.Context, *toolCall) (*toolResult, error) { return content(c...), nil })
}

func simpleFixtures(s *sdk.Server) {
	embedded := func(uri string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource content."}}
	}
	picture := &sdk.ImageContent{Data: dot, MIMEType: "image/png"}
	fixed(s, "test_simple_text", says("This is a simple text response for testing."))
	fixed(s, "test_image_content", picture)
	fixed(s, "test_audio_content", &sdk.AudioContent{Data: silence, MIMEType: "audio/wav"})
	fixed(s, "test_embedded_resource", embedded("test://embedded-resource"))
	fixed(s, "test_multiple_content_types", says("Multiple content types test:"), picture, embedded("test://mixed-content-resource"))
	fixed(s, "test_streaming_elicitation", says("There is nothing to ask."))
	fixture(s, "test_error_handling", func(context.Context, *toolCall) (*toolResult, error) {
		return nil, errors.New("This tool intentionally returns an error for testing")
	})
	fixture(s, "test_tool_with_progress", func(ctx context.Context, r *toolCall) (*toolResult, error) {
		token := r.Params.GetProgressToken()
		for _, done := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100, Message: "It goes on"}); err != nil {
				return nil, err
			}
			time.Sleep(20 * time.Millisecond)
		}
		return content(says(fmt.Sprint(token))), nil
	})
	logs := func(lines ...string) func(context.Context, *toolCall) (*toolResult, error) {
		return func(ctx context.Context, r *toolCall) (*toolResult, error) {
			for _, line := range lines {
				_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: line})
				time.Sleep(20 * time.Millisecond)
			}
			return content(says("Logged.")), nil
		}
	}
	fixture(s, "test_tool_with_logging", logs("begun", "under way", "over"))
	fixture(s, "test_logging_tool", logs("one line"))
	fixture(s, "test_missing_capability", func(_ context.Context, r *toolCall) (*toolResult, error) {
		if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
			return content(says("The client can sample.")), nil
		}
		data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client cannot sample", Data: data}
	})
}

func schemaFixtures(s *sdk.Server) {
	s.AddTool(&sdk.Tool{Name: "json_schema_2020_12_tool", Description: "A schema that must arrive as it is", InputSchema: json.RawMessage(`{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]},
			"phone": {"type": "string"}, "email": {"type": "string"}},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false}`)},
		func(context.Context, *toolCall) (*toolResult, error) { return content(says("Taken.")), nil })
	s.AddTool(&sdk.Tool{Name: "test_x_mcp_header", Description: "An argument that a header repeats", InputSchema: json.RawMessage(`{"type": "object",
		"properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}}}`)},
		func(context.Context, *toolCall) (*toolResult, error) { return content(says("Taken.")), nil })
}

// changeFixtures change what the server offers while clients listen.
func changeFixtures(s *sdk.Server) {
	fixture(s, "test_trigger_tool_change", func(context.Context, *toolCall) (*toolResult, error) {
		fixed(s, "came_later", says("A tool that came later."))
		return content(says("There is another tool.")), nil
	})
	fixture(s, "test_trigger_prompt_change", func(context.Context, *toolCall) (*toolResult, error) {
		s.AddPrompt(&sdk.Prompt{Name: "came_later", Description: "A prompt that came later"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return prompt(says("Later.")), nil
		})
		return content(says("There is another prompt.")), nil
	})
}

func object(name string, kind string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{name: {Type: kind}}, Required: []string{name}}
}

func question(message, field, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: message, RequestedSchema: object(field, kind)}
}

// accepted is what the person behind the client gave for key; nil when they
// did not agree.
func accepted(all sdk.InputResponseMap, key string) map[string]any {
	if r, ok := all[key].(*sdk.ElicitResult); ok && r != nil && r.Action == "accept" {
		return r.Content
	}
	return nil
}

// sampled is the text that the client's model gave for key.
func sampled(all sdk.InputResponseMap, key string) (string, bool) {
	r, ok := all[key].(*sdk.CreateMessageWithToolsResult)
	if !ok || r == nil {
		return "", false
	}
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			return text.Text, true
		}
	}
	return "", true
}

func asks(state string, requests sdk.InputRequestMap) *toolResult {
	return &toolResult{InputRequests: requests, RequestState: state}
}

func sample(text string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{MaxTokens: 64, Messages: []*sdk.SamplingMessage{{Role: "user", Content: says(text)}}}
}

const mark = "state:"

// badState refuses a state that this server did not give.
func badState(state string) error {
	if strings.HasPrefix(state, mark) && !strings.Contains(state, "TAMPERED") {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request state is not one of this server's"}
}

// inputFixtures ask back through the client, each in a way of its own.
func inputFixtures(s *sdk.Server) {
	const prefix = "test_input_required_result_"
	fixture(s, prefix+"elicitation", func(_ context.Context, r *toolCall) (*toolResult, error) {
		if name, ok := accepted(r.Params.InputResponses, "user_name")["name"].(string); ok && name != "" {
			return content(says("Hello, " + name + "!")), nil
		}
		return asks("", sdk.InputRequestMap{"user_name": question("What is your name?", "name", "string")}), nil
	})
	fixture(s, prefix+"sampling", func(_ context.Context, r *toolCall) (*toolResult, error) {
		if text, ok := sampled(r.Params.InputResponses, "capital_question"); ok {
			return content(says("The model said: " + text)), nil
		}
		return asks("", sdk.InputRequestMap{"capital_question": sample("What is the capital of France?")}), nil
	})
	fixture(s, prefix+"list_roots", func(_ context.Context, r *toolCall) (*toolResult, error) {
		if roots, ok := r.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok && roots != nil {
			return content(says(fmt.Sprintf("%d roots", len(roots.Roots)))), nil
		}
		return asks("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}}), nil
	})
	confirms := func(_ context.Context, r *toolCall) (*toolResult, error) {
		if r.Params.RequestState == "" && len(r.Params.InputResponses) == 0 {
			return asks(mark+"confirm", sdk.InputRequestMap{"confirm": question("Please confirm", "ok", "boolean")}), nil
		}
		if err := badState(r.Params.RequestState); err != nil {
			return nil, err
		}
		if accepted(r.Params.InputResponses, "confirm") == nil {
			return asks(mark+"confirm", sdk.InputRequestMap{"confirm": question("Please confirm", "ok", "boolean")}), nil
		}
		return content(says("state-ok")), nil
	}
	fixture(s, prefix+"request_state", confirms)
	fixture(s, prefix+"tampered_state", confirms)
	fixture(s, prefix+"multiple_inputs", func(_ context.Context, r *toolCall) (*toolResult, error) {
		all := r.Params.InputResponses
		name := accepted(all, "user_name")["name"]
		greeting, ok := sampled(all, "greeting")
		roots, rooted := all["client_roots"].(*sdk.ListRootsResult)
		if name != nil && ok && rooted && roots != nil {
			return content(says(fmt.Sprint(greeting, name, len(roots.Roots)))), nil
		}
		return asks(mark+"all", sdk.InputRequestMap{"user_name": question("What is your name?", "name", "string"),
			"greeting": sample("Say hello"), "client_roots": &sdk.ListRootsParams{}}), nil
	})
	fixture(s, prefix+"multi_round", func(_ context.Context, r *toolCall) (*toolResult, error) {
		state, all := r.Params.RequestState, r.Params.InputResponses
		switch {
		case state == "":
			return asks(mark+"1", sdk.InputRequestMap{"step1": question("What is your name?", "name", "string")}), nil
		case state == mark+"1":
			return asks(fmt.Sprint(mark, "2 ", accepted(all, "step1")["name"]), sdk.InputRequestMap{"step2": question("Which colour?", "color", "string")}), nil
		}
		if err := badState(state); err != nil {
			return nil, err
		}
		return content(says(fmt.Sprint(strings.TrimPrefix(state, mark+"2 "), " likes ", accepted(all, "step2")["color"]))), nil
	})
	fixture(s, prefix+"capabilities", func(_ context.Context, r *toolCall) (*toolResult, error) {
		c := r.ClientCapabilities()
		if c == nil || len(r.Params.InputResponses) > 0 {
			return content(says("Nothing more is asked.")), nil
		}
		all := sdk.InputRequestMap{}
		if c.Elicitation != nil {
			all["user_name"] = question("What is your name?", "name", "string")
		}
		if c.Sampling != nil {
			all["greeting"] = sample("Say hello")
		}
		if c.RootsV2 != nil {
			all["client_roots"] = &sdk.ListRootsParams{}
		}
		if len(all) == 0 {
			return content(says("This client cannot be asked.")), nil
		}
		return asks("", all), nil
	})
}

func prompt(all ...sdk.Content) *sdk.GetPromptResult {
	r := &sdk.GetPromptResult{}
	for _, c := range all {
		r.Messages = append(r.Messages, &sdk.PromptMessage{Role: "user", Content: c})
	}
	return r
}

func promptFixtures(s *sdk.Server) {
	add := func(name string, do func(*sdk.GetPromptRequest) *sdk.GetPromptResult, arguments ...string) {
		p := &sdk.Prompt{Name: name, Description: "A fixture of the conformance suite"}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: "Some text", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) { return do(r), nil })
	}
	add("test_simple_prompt", func(*sdk.GetPromptRequest) *sdk.GetPromptResult {
		return prompt(says("This is a simple prompt for testing."))
	})
	add("test_prompt_with_arguments", func(r *sdk.GetPromptRequest) *sdk.GetPromptResult {
		return prompt(says(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])))
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(r *sdk.GetPromptRequest) *sdk.GetPromptResult {
		return prompt(&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: r.Params.Arguments["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}},
			says("Please process the embedded resource above."))
	}, "resourceUri")
	add("test_prompt_with_image", func(*sdk.GetPromptRequest) *sdk.GetPromptResult {
		return prompt(&sdk.ImageContent{Data: dot, MIMEType: "image/png"}, says("Please analyze the image above."))
	})
	add("test_input_required_result_prompt", func(r *sdk.GetPromptRequest) *sdk.GetPromptResult {
		if c := accepted(r.Params.InputResponses, "user_context"); c != nil {
			return prompt(says(fmt.Sprint("Context: ", c["context"])))
		}
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": question("Please provide context", "context", "string")}}
	})
}

func resourceFixtures(s *sdk.Server) {
	add := func(uri, kind, text string, blob []byte) {
		s.AddResource(&sdk.Resource{Name: strings.TrimPrefix(uri, "test://"), Description: "A fixture of the conformance suite", URI: uri, MIMEType: kind},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: kind, Text: text, Blob: blob}}}, nil
			})
	}
	add("test://static-text", "text/plain", "This is the content of the static text resource.", nil)
	add("test://static-binary", "image/png", "", dot)
	add("test://watched-resource", "text/plain", "Watched.", nil)
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", Description: "A fixture of the conformance suite", URITemplate: "test://template/{id}/data", MIMEType: "application/json"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			text, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: string(text)}}}, nil
		})
}
