// Owns how an app is pointed here: the one line that changes, in three languages.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { me } from "../../api/queries";
import { CodeBlock, Segmented } from "../../design";

type Language = "python" | "node" | "curl";

function snippet(language: Language, base: string, key: string, model: string): string {
  if (language === "python")
    return `from openai import OpenAI

client = OpenAI(
    base_url="${base}",  # the one line that changes
    api_key="${key}",
)
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`;
  if (language === "node")
    return `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "${base}", // the one line that changes
  apiKey: "${key}",
});
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`;
  return `curl ${base}/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`;
}

export function Connect({
  apiKey = "sd-…",
  token,
  model = "your-model",
}: {
  apiKey?: string;
  token?: string;
  model?: string;
}) {
  const { data } = useQuery(me);
  const [language, setLanguage] = useState<Language>("python");
  const plain = data?.base_url ?? `${location.origin}/v1`;
  const base = token ? plain.replace(/\/v1$/, `/p/${token}/v1`) : plain;
  return (
    <div style={{ display: "grid", gap: 8, textAlign: "left" }}>
      <Segmented
        label="Language"
        value={language}
        onChange={setLanguage}
        options={[
          { value: "python", label: "Python" },
          { value: "node", label: "Node" },
          { value: "curl", label: "curl" },
        ]}
      />
      <CodeBlock label={`${language} snippet`} code={snippet(language, base, apiKey, model)} />
    </div>
  );
}
