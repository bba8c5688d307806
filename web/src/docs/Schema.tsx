import { marked } from 'marked'
import type { ComponentChildren } from 'preact'
import { nameOf, type Media, type Schema } from './spec'

/** Text in Markdown; a table that is too wide scrolls, by the keyboard too. */
export function Text({ of }: { of?: string | undefined }) {
  if (!of) return null
  const html = marked.parse(of, { async: false }).replaceAll('<table>', '<div class="table" tabindex="0"><table>').replaceAll('</table>', '</table></div>')
  return <div class="text" dangerouslySetInnerHTML={{ __html: html }} />
}

/** Text in Markdown that is part of a line. */
export const Words = ({ of }: { of: string }) => <span dangerouslySetInnerHTML={{ __html: marked.parseInline(of, { async: false }) }} />

const join = (parts: ComponentChildren[], word: string) => parts.map((part, i) => <>{i > 0 && word}{part}</>)
const literal = (value: unknown) => <code>{JSON.stringify(value)}</code>

/** The type of a schema, on one line. */
export function Type({ of }: { of: Schema }): any {
  if (of.$ref) return <a href={`#schema-${nameOf(of.$ref)}`}>{nameOf(of.$ref)}</a>
  if (of.const !== undefined) return literal(of.const)
  if (of.enum) return <>{join(of.enum.map(literal), ' or ')}</>
  if (of.oneOf) return <>{join(of.oneOf.map((one) => <Type of={one} />), ' or ')}</>
  if (of.type === 'array' && of.items) return <>list of <Type of={of.items} /></>
  if (of.type === 'object' && typeof of.additionalProperties === 'object') return <>object of <Type of={of.additionalProperties} /></>
  return <>{[of.type ?? 'anything'].flat().join(' or ')}{of.format ? ` (${of.format})` : ''}</>
}

const bounds: [keyword: string, before: string, after: string][] = [
  ['minimum', 'at least', ''], ['maximum', 'at most', ''], ['minLength', 'at least', 'characters'], ['maxLength', 'at most', 'characters'],
  ['minItems', 'at least', 'entries'], ['maxItems', 'at most', 'entries'], ['maxProperties', 'at most', 'keys'], ['pattern', 'in the form', ''], ['default', 'without it', ''],
]

function Bounds({ of }: { of: Schema }) {
  const told = bounds.filter(([keyword]) => of[keyword] !== undefined)
  if (told.length === 0) return null
  return <span class="bounds">{join(told.map(([keyword, before, after]) => <>{before} <code>{String(of[keyword])}</code> {after}</>), ', ')}</span>
}

/** One named value: a field, a parameter, a header. */
export function Named({ name, schema, required, description, where }: { name: string; schema: Schema; required?: boolean | undefined; description?: string | undefined; where?: string }) {
  return (
    <div class="named">
      <dt><code>{name}</code> <span class="type"><Type of={schema} /></span>{where && <span class="where">{where}</span>}{required && <span class="required">required</span>}</dt>
      <dd><Text of={description} /><Bounds of={schema} /><Fields of={schema} /></dd>
    </div>
  )
}

/** The fields of an object, or of the objects of a list, that is described where it stands. */
export function Fields({ of }: { of: Schema }): any {
  if (of.$ref) return null
  if (of.items) return <Fields of={of.items} />
  if (of.oneOf) return <>{of.oneOf.map((one) => <Fields of={one} />)}</>
  if (!of.properties) return null
  return <dl>{Object.entries(of.properties).map(([name, field]) => <Named name={name} schema={field} required={of.required?.includes(name)} description={field.description} />)}</dl>
}

/** A schema under its own name. */
export function NamedSchema({ name, schema }: { name: string; schema: Schema }) {
  return (
    <section class="schema" id={`schema-${name}`}>
      <h3>{name}</h3>
      <p class="type"><Type of={schema} /> <Bounds of={schema} /></p>
      <Text of={schema.description} />
      <Fields of={schema} />
      {schema.examples?.map((example) => <Example value={example} />)}
    </section>
  )
}

function Example({ value, name = 'Example' }: { value: unknown; name?: string | undefined }) {
  return (
    <details>
      <summary>{name}</summary>
      <pre tabIndex={0}><code>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</code></pre>
    </details>
  )
}

/** A body in each of its forms. */
export function Body({ content }: { content?: Record<string, Media> | undefined }) {
  return <>{Object.entries(content ?? {}).map(([type, media]) => (
    <div class="body">
      <p><code>{type}</code> <span class="type"><Type of={media.schema} /></span></p>
      <Text of={media.schema.description} />
      <Fields of={media.schema} />
      {media.example !== undefined && <Example value={media.example} />}
      {Object.entries(media.examples ?? {}).map(([name, { summary, value }]) => <Example name={`Example: ${summary ?? name}`} value={value} />)}
    </div>
  ))}</>
}
