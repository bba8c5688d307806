import { Body, Named, NamedSchema, Text, Words } from './Schema'
import { isOpen, nameOf, operations, resolve, type Operation, type Response, type Spec } from './spec'

const slug = (tag: string) => `tag-${tag.replaceAll(' ', '-')}`

/** The contract as a page to read. */
export function Contract({ spec }: { spec: Spec }) {
  const all = operations(spec)
  const tags = spec.tags.map((tag) => ({ ...tag, operations: all.filter(({ tags }) => tags[0] === tag.name) }))
  return (
    <div class="contract">
      <nav aria-label="Contents">
        <a class="brand" href="/">Loadline</a>
        {tags.map((tag) => (
          <div>
            <a href={`#${slug(tag.name)}`}>{tag.name}</a>
            <ul>{tag.operations.map((one) => <li><a href={`#${one.operationId}`}>{one.summary}</a></li>)}</ul>
          </div>
        ))}
        <div><a href="#schemas">forms</a></div>
        <div><a href="#errors">errors</a></div>
      </nav>
      <main>
        <h1>{spec.info.title} {spec.info.version}: the API</h1>
        <p class="lead">{spec.info.summary} For programs the same is in <a href="/openapi.yaml">openapi.yaml</a>.</p>
        <Text of={spec.info.description} />
        {tags.map((tag) => (
          <section>
            <h2 id={slug(tag.name)}>{tag.name}</h2>
            <Text of={tag.description} />
            {tag.operations.map((one) => <OneOperation spec={spec} operation={one} />)}
          </section>
        ))}
        <section>
          <h2 id="schemas">forms</h2>
          {Object.entries(spec.components.schemas).map(([name, schema]) => <NamedSchema name={name} schema={schema} />)}
        </section>
        <section>
          <h2 id="errors">errors</h2>
          {Object.entries(spec.components.responses).map(([name, response]) => (
            <section class="schema" id={`response-${name}`}>
              <h3>{name}</h3>
              <OneResponse spec={spec} response={response} />
            </section>
          ))}
        </section>
      </main>
    </div>
  )
}

function OneOperation({ spec, operation }: { spec: Spec; operation: Operation }) {
  const { method, path, operationId, summary, description, parameters, requestBody, responses } = operation
  const own = Object.entries(responses).filter(([, response]) => !('$ref' in response))
  const shared = Object.entries(responses).filter(([, response]) => '$ref' in response)
  return (
    <article id={operationId} class="operation">
      <h3>{summary}</h3>
      <p class="route"><span class={`method ${method.toLowerCase()}`}>{method}</span> <code>{path}</code>{isOpen(operation) && <span class="where">open: needs no key</span>}</p>
      <Text of={description} />
      {parameters.length > 0 && <>
        <h4>Parameters</h4>
        <dl>{parameters.map((one) => resolve(spec, one)).map((one) => <Named {...one} where={one.in} />)}</dl>
      </>}
      {requestBody && <><h4>Request</h4><Body content={requestBody.content} /></>}
      {own.map(([status, response]) => <>
        <h4><span class="status">{status}</span></h4>
        <OneResponse spec={spec} response={resolve<Response>(spec, response)} />
      </>)}
      {shared.length > 0 && <>
        <h4>Errors</h4>
        <ul class="errors">{shared.map(([status, response]) => (
          <li><a href={`#response-${nameOf((response as { $ref: string }).$ref)}`}>{status}</a> <Words of={resolve<Response>(spec, response).description} /></li>
        ))}</ul>
      </>}
    </article>
  )
}

function OneResponse({ spec, response }: { spec: Spec; response: Response }) {
  const headers = Object.entries(response.headers ?? {})
  return (
    <>
      <Text of={response.description} />
      {headers.length > 0 && <dl>{headers.map(([name, header]) => <Named name={name} {...resolve(spec, header)} required={false} where="header" />)}</dl>}
      <Body content={response.content} />
    </>
  )
}
