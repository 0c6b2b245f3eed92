// Requests to the service. Every response other than success raises a ServiceError with the text of its problem.

export const session = {
  get token() { return sessionStorage.getItem("deciban-token") || ""; },
  set token(value) { sessionStorage.setItem("deciban-token", value); },
  get who() { return localStorage.getItem("deciban-who") || ""; },
  set who(value) { localStorage.setItem("deciban-who", value); },
};

export class ServiceError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `status ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

async function request(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (session.token) headers.Authorization = `Bearer ${session.token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new ServiceError(0, { detail: "The service does not answer. Is it still running?" });
  }
  if (!response.ok) {
    let problem = {};
    try { problem = await response.json(); } catch { /* no body */ }
    throw new ServiceError(response.status, problem);
  }
  return response;
}

export async function get(path) {
  return (await request(path)).json();
}

export async function post(path, content, headers = {}) {
  const options = { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(content) };
  return (await request(path, options)).json();
}

// Sends a lesson. If the connection breaks, it is sent again with the same key, so that the service learns it once.
export async function teach(path, content) {
  const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const body = session.who ? { ...content, who: session.who } : content;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await post(path, body, { "Idempotency-Key": key });
    } catch (error) {
      if (error.status !== 0 || attempt === 2) throw error;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
}

export async function upload(text, kind) {
  const options = { method: "POST", headers: { "Content-Type": kind, Accept: "text/csv" }, body: text };
  const response = await request("/predict?collect=true", options);
  return { rows: Number(response.headers.get("X-Deciban-Rows")), text: await response.text() };
}
