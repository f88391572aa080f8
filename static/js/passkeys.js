// Passkeys: a button asks the browser for one, puts what it says into its form, and sends that. What fails is said on the page.
"use strict";

const options = () => JSON.parse(document.getElementById("passkey-options").textContent);

async function creation(button) {
  const wanted = options().creation_options;
  const opensAlone = document.getElementById(button.dataset.alone).checked;
  const chosen = wanted.publicKey.authenticatorSelection;
  chosen.residentKey = opensAlone ? "required" : "discouraged";
  chosen.requireResidentKey = opensAlone;
  if (opensAlone) chosen.userVerification = "required";
  return window.webauthnJSON.create(wanted);
}

async function signIn(form) {
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error("no options");
  return window.webauthnJSON.get((await answer.json()).request_options);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-passkey]");
  if (!button) return;
  const isNumber = /^[\d.:[\]]+$/.test(location.hostname);
  const failed = document.getElementById(isNumber ? "passkey-number" : "passkey-error");
  const input = document.getElementById(button.dataset.credential);
  failed.hidden = true;
  button.disabled = true;
  try {
    const ways = { create: () => creation(button), get: () => window.webauthnJSON.get(options().request_options), login: () => signIn(input.form) };
    input.value = JSON.stringify(await ways[button.dataset.passkey]());
    input.form.submit();
  } catch {
    failed.hidden = false;
    button.disabled = false;
    button.focus();
  }
});
