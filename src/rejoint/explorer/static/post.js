// Requests to the rejoint that serves the page.

/** The answer to a request; null without rejoint, and where it has none. */
export async function post(path, plain) {
  try {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(plain) });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
