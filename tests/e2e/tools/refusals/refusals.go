// Package refusals asks the rules of a project about objects: one JSON object a line on standard input, and for each a
// line on standard output, a JSON string that says why it is refused. The string is empty for an object that is taken.
package refusals

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Rule returns why an object, as JSON, is refused: nil if it is taken.
type Rule func(object []byte) error

// Of makes a rule of a function of a project, which may set defaults in the object first.
func Of[Object any](refuse func(*Object) error) Rule {
	return func(object []byte) error {
		var typed Object
		if err := json.Unmarshal(object, &typed); err != nil {
			return err
		}
		return refuse(&typed)
	}
}

// Main answers by rules under "apiVersion/Kind". It ends the program with an error for an object of another kind.
func Main(rules map[string]Rule) {
	if err := answer(rules, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(rules map[string]Rule, objects io.Reader, answers io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReader(objects))
	encoder := json.NewEncoder(answers)
	for {
		var object json.RawMessage
		if err := decoder.Decode(&object); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading an object: %w", err)
		}
		refusal, err := refusalOf(object, rules)
		if err != nil {
			return err
		}
		if err := encoder.Encode(refusal); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
}

func refusalOf(object json.RawMessage, rules map[string]Rule) (string, error) {
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(object, &head); err != nil {
		return "", fmt.Errorf("reading the kind of an object: %w", err)
	}
	name := head.APIVersion + "/" + head.Kind
	rule, known := rules[name]
	if !known {
		return "", fmt.Errorf("no rule for %s", name)
	}
	if refused := rule(object); refused != nil {
		return refused.Error(), nil
	}
	return "", nil
}
