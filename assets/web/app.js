// What a page cannot do without a script: passkeys, and copying. Elements that
// need it are hidden until it has looked whether the browser can.
"use strict";

// Passkeys. The form, or the part of it, that has data-passkey asks the hub
// what to ask the browser for, and sends the answer as any form.
if (window.PublicKeyCredential && PublicKeyCredential.parseCreationOptionsFromJSON && PublicKeyCredential.prototype.toJSON) {
  for (const part of document.querySelectorAll("[data-passkey]")) {
    const form = part.closest("form");
    const button = part.querySelector("[data-go], button[type=submit]");
    const problem = part.querySelector("[data-problem]");
    const say = (text) => { problem.textContent = text; problem.hidden = false; };
    const go = async (event) => {
      event.preventDefault();
      problem.hidden = true;
      button.disabled = true;
      try {
        const answer = await fetch("/passkey/options", { method: "POST", body: new URLSearchParams(new FormData(form)) });
        const options = await answer.json();
        if (!answer.ok) { say(options.error); return; }
        const credential = part.dataset.passkey === "create"
          ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey) })
          : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey) });
        form.elements.credential.value = JSON.stringify(credential);
        form.submit();
      } catch (err) {
        if (err.name === "InvalidStateError") say("This device has a passkey for this hub already.");
        else if (err.name === "NotAllowedError") say("No passkey was used. Try again when you are ready.");
        else say("That did not work: " + err.message);
      } finally {
        button.disabled = false;
      }
    };
    if (part === form) form.addEventListener("submit", go);
    else button.addEventListener("click", go);
    part.hidden = false;
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const word = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = word; }, 2000);
  });
}
